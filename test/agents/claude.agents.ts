import { contract } from "./contract.ts";

contract("claude");
