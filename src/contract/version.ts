/** Raised whenever the contract changes; `version.test.ts` hashes the contract and says when. */
export const CONTRACT_VERSION = "1.19.0";
