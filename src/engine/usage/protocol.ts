import type { Usage } from "../../contract/index.ts";
import type { UserHome } from "../../history/port.ts";

export interface UsageOptions {
  readonly userHome: UserHome;
  /** Additional folders per format, from the configuration. */
  readonly roots: Readonly<Record<string, readonly string[]>>;
}

export type UsageSide = {
  readonly total: (asked: { agent: string; id: string }) => Promise<Usage | null>;
  readonly forget: (id: string) => void;
};
