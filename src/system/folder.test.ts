import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { folderChange, folderIdentity, folderVerdict, isInside, realPathOf } from "./folder.ts";

const root = realpathSync(mkdtempSync(path.join(tmpdir(), "kinfold-folder-")));
after(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
function folderIn(name: string): string {
  const folder = path.join(root, String(count++), name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

describe("a path is inside a folder", () => {
  const inside = ["/a/me", "/a/me/", "/a/me/a", "/a/me/..evil", "/a/me/...", "/a/me/a/../b"];
  const outside = ["/a", "/", "/a/me/..", "/a/mex", "/a/me/../you", "/a/me..", "/a/me/../..me", "/a/..me"];

  it("by its segments: a name that begins with two dots is a normal name", () => {
    for (const each of inside) assert.equal(isInside(each, "/a/me"), true, each);
    for (const each of outside) assert.equal(isInside(each, "/a/me"), false, each);
    assert.equal(isInside("/anything", "/"), true);
  });

  it("only by its real path: a dangling link that points outside is outside", () => {
    const folder = folderIn("work");
    symlinkSync("/etc/kinfold-not-there", path.join(folder, "dangling"));
    symlinkSync("..", path.join(folder, "up"));
    symlinkSync("circle", path.join(folder, "circle"));
    mkdirSync(path.join(folder, "sub"));
    symlinkSync("sub/new", path.join(folder, "own"));
    const leads = (name: string): boolean => isInside(realPathOf(path.join(folder, name)), folder);
    for (const name of ["dangling", "up", "up/x/y", "circle", "dangling/x"])
      assert.equal(leads(name), false, name);
    for (const name of ["own", "sub/x", "a/b/c", "..evil"]) assert.equal(leads(name), true, name);
  });
});

describe("where sessions may work", () => {
  it("a rule's folder that is a link stands for its target", () => {
    const home = folderIn("home");
    const link = path.join(root, "home-link");
    symlinkSync(home, link);
    const at = (folder: string, roots: string[] = []) => folderVerdict(folder, { roots, closed: [link] });
    assert.equal(at(path.join(home, "..evil")), "closed");
    assert.equal(at(`${home}2`), "allowed");
    assert.equal(folderVerdict(path.join(home, "a"), { roots: [link], closed: [] }), "allowed");
    assert.equal(at(`${home}2`, [link]), "outside");
  });
});

describe("a folder that was granted", () => {
  const none = { roots: [], closed: [], identity: null };

  it("is refused once a link is in its place, or in that of a folder above it", () => {
    const folder = folderIn("a/b");
    const secret = folderIn("secret");
    mkdirSync(path.join(secret, "b"));
    assert.equal(folderChange(folder, none), null);
    renameSync(folder, `${folder}-away`);
    symlinkSync(secret, folder);
    assert.match(folderChange(folder, none) ?? "", /replaced by a link to .*secret/);
    rmSync(folder);
    renameSync(`${folder}-away`, folder);
    const above = path.dirname(folder);
    renameSync(above, `${above}-away`);
    symlinkSync(secret, above);
    assert.match(folderChange(folder, none) ?? "", /replaced by a link to .*secret/);
  });

  it("is refused once another folder is in its place, and accepted while it is the same", () => {
    const folder = folderIn("work");
    const granted = { ...none, identity: folderIdentity(folder) };
    assert.equal(folderChange(folder, granted), null);
    renameSync(folder, `${folder}-away`);
    assert.match(folderChange(folder, granted) ?? "", /no longer exists/);
    mkdirSync(folder);
    assert.match(folderChange(folder, granted) ?? "", /replaced by another one/);
    assert.equal(folderChange(folder, none), null);
  });

  it("is refused once the rule no longer allows it", () => {
    const folder = folderIn("work");
    assert.match(folderChange(folder, { ...none, closed: [path.dirname(folder)] }) ?? "", /own home/);
    assert.match(folderChange(folder, { ...none, roots: ["/else"] }) ?? "", /outside.*\/else/);
  });
});
