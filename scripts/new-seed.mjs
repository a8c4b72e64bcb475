// Plain JavaScript for Node 20.

/** Calls `run` with a seed that no list has. All tests that draw at random use it instead of their listed seeds. */
export async function runWithNewSeed(run) {
  const seed = Math.floor(Math.random() * 2 ** 31);
  console.log(`seed ${seed}: KINFOLD_TEST_SEED=${seed} npm test -- WORD repeats a test that fails`);
  process.env.KINFOLD_TEST_SEED = String(seed);
  try {
    return await run();
  } finally {
    delete process.env.KINFOLD_TEST_SEED;
  }
}
