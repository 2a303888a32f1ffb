import { modelSettings } from '../../ai/models/settings.ts';
import { defineSettings } from '../../settings.ts';

/** The model that judges goals without criteria: a provider, or one of its models. */
export const verifierSettings = defineSettings({
  variables: {
    judgeModel: {
      variable: 'CAPSTAN_JUDGE_MODEL',
      meaning: 'provider, or provider/model, that judges goals without criteria, or off (the first provider)',
    },
  },
  read: (read): { readonly judgeModel: string | undefined } => {
    const { models } = read.of(modelSettings);
    const judgeModel = read.text('judgeModel') ?? models[0]?.provider;
    if (judgeModel === undefined || judgeModel === 'off') return { judgeModel: undefined };
    const [provider = '', ...model] = judgeModel.split('/');
    const known = models.find((each) => each.provider === provider);
    if (known && (model.length === 0 || known.models.includes(model.join('/')))) return { judgeModel };
    const { variable } = modelSettings.variables.models!;
    read.report('judgeModel', ` must be off, or a provider or provider/model from ${variable}.`);
    return { judgeModel: undefined };
  },
});
