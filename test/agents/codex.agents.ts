import { contract } from "./contract.ts";

contract("codex");
