export const areaOf = ({ width, height }) => width * height;
