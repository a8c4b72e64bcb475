/** Trigger types whose sender waits for an answer; all other types block nobody. */
export const BLOCKING_TYPES = ["ask_user_question", "plan_review", "permission"] as const;
