/**
 * Raised with every change of the contract; `version.test.ts` compares a hash of the contract and fails if it
 * was not.
 */
export const CONTRACT_VERSION = "1.19.0";
