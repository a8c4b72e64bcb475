import { contract } from "./contract.ts";

contract("gemini");
