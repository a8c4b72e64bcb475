import { contract } from "./contract.ts";

contract("opencode");
