/** Trigger types whose sender waits for an answer. An end, an error or a fired type blocks nobody. */
export const BLOCKING_TYPES = ["ask_user_question", "plan_review", "permission"] as const;
