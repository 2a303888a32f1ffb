import { useState } from 'react';

const CHOICE = 'capstan.notices';

/** Whether the visitor wants to be told of new items while they look at something else. */
export function wantsNotices(): boolean {
  return 'Notification' in window && Notification.permission === 'granted' && localStorage.getItem(CHOICE) === 'on';
}

/** The switch for notifications of the browser. */
export function useNotices() {
  const [isOn, setOn] = useState(wantsNotices);
  return {
    isPossible: 'Notification' in window && Notification.permission !== 'denied',
    isOn,
    toggle: async (): Promise<void> => {
      const isWanted = !isOn && (await Notification.requestPermission()) === 'granted';
      localStorage.setItem(CHOICE, isWanted ? 'on' : 'off');
      setOn(isWanted);
    },
  };
}
