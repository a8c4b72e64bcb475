/** Raise it with every change of the contract; otherwise `version.test.ts` fails. */
export const CONTRACT_VERSION = "1.20.0";
