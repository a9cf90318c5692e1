// The agent's stand-in. STAND_IN_MODE says how it ends: success (default), error-before-write, error-after-write, or throws,
// which leaves no execution file and no conclusion. STAND_IN_GATE is an address that is asked before the end: the answer
// comes when the test lets the agent go on.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const env = process.env;
const mode = env.STAND_IN_MODE || "success";
const payload = JSON.parse(readFileSync(env.GITHUB_EVENT_PATH, "utf8"));
const issue = payload.issue.number;

if (mode !== "error-before-write") {
  const run = `${env.GITHUB_SERVER_URL}/${env.GITHUB_REPOSITORY}/actions/runs/${env.GITHUB_RUN_ID}`;
  const answer = await fetch(`${env.GITHUB_API_URL}/repos/${env.GITHUB_REPOSITORY}/issues/${issue}/comments`, {
    method: "POST",
    headers: {
      accept: "application/vnd.github+json",
      authorization: `Bearer ${env.OVERRIDE_GITHUB_TOKEN || env.STAND_IN_APP_TOKEN}`,
      "content-type": "application/json",
      "user-agent": "agent-stand-in",
    },
    body: JSON.stringify({
      body: `**Claude finished @${payload.sender.login}'s task in 1m 30s** \u2014\u2014 [View job](${run})\n\n---\nLooked at it. Ask @claude again for more.`,
    }),
  });
  if (answer.status !== 201) {
    console.error(`the comment was refused: ${answer.status} ${await answer.text()}`);
    process.exit(1);
  }
}

if (env.STAND_IN_GATE) await (await fetch(env.STAND_IN_GATE)).text();

if (mode === "throws") {
  console.error("the agent's action threw");
  process.exit(1);
}

const failed = mode !== "success";
const file = join(env.RUNNER_TEMP, "claude-execution-output.json");
writeFileSync(
  file,
  JSON.stringify([
    { type: "system", subtype: "init", session_id: "stand-in" },
    { type: "user", message: { role: "user", content: env.PROMPT } },
    {
      type: "result",
      subtype: failed ? "error_during_execution" : "success",
      is_error: failed,
      num_turns: 7,
      duration_ms: 90000,
      total_cost_usd: 0.42,
      session_id: "stand-in",
    },
  ]),
);
const outputs = {
  execution_file: file,
  branch_name: "",
  session_id: "stand-in",
  conclusion: failed ? "failure" : "success",
};
for (const [name, value] of Object.entries(outputs)) appendFileSync(env.GITHUB_OUTPUT, `${name}=${value}\n`);
process.exit(failed ? 1 : 0);
