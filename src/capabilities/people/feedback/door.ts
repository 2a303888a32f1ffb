import type { Annotation } from '../../../protocol/people/annotations.ts';
import type { Unit } from '../../../store/sql.ts';
import { door, extensionPoint } from '../../capability.ts';
import type { FeedbackService } from './service.ts';

export type Feedback = FeedbackService;
export const Feedback = door<Feedback>()('feedback');

/** Writes that follow from a person's annotation, in the same unit. */
export type AnnotationReaction = (tenant: string, annotation: Annotation) => Unit;

/** Where capabilities react to annotations. */
export const AnnotationReactions = extensionPoint<AnnotationReaction>('feedback.annotation-reactions');
