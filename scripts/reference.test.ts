import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ROOT, madePages, pagesOnDisk } from "./reference.ts";

describe("the generated reference", () => {
  const pages = madePages();

  for (const [path, text] of pages) {
    it(`${path} is what the code says`, () => {
      const committed = readFileSync(join(ROOT, path), "utf8");
      assert.ok(committed === text, `${path} is out of date: run \`npm run docs\``);
    });
  }

  it("the folder of generated pages has no other files", () => {
    assert.deepEqual(
      pagesOnDisk().filter((path) => !pages.has(path)),
      [],
    );
  });

  it("every link from one page to another leads somewhere", () => {
    for (const [path, text] of pages) {
      for (const [, page = "", anchor = ""] of text.matchAll(/\]\((\w+\.md)?#([\w-]+)\)/g)) {
        const target = page === "" ? text : (pages.get(`docs/reference/${page}`) ?? "");
        const found =
          target.includes(`<a id="${anchor}">`) || target.toLowerCase().includes(`\n## ${anchor}\n`);
        assert.ok(found, `${path} links to ${page}#${anchor}`);
      }
    }
  });
});
