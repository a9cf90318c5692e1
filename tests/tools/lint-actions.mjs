// Reads workflows and action metadata with GitHub's own parser and prints what it objects to, as FILE:LINE:COLUMN: MESSAGE.
// Exit codes: 0 nothing found, 1 something found, 2 usage.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { parseAction } from "@actions/workflow-parser/actions/action-parser";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";

async function objections(name) {
  const file = { name, content: readFileSync(name, "utf8") };
  const isAction = /^action\.ya?ml$/.test(basename(name));
  const { context, value } = (isAction ? parseAction : parseWorkflow)(file, new NoOperationTraceWriter());
  if (!isAction && value) {
    // The conversion finds what the schema cannot say, such as a `needs` of a job that is not there.
    await convertWorkflowTemplate(context, value);
  }
  return context.errors.getErrors().map((error) => {
    const { line = 1, column = 1 } = error.range?.start ?? {};
    return `${name}:${line}:${column}: ${error.rawMessage}`;
  });
}

async function main(files) {
  if (files.length === 0) {
    console.error("usage: lint-actions FILE...");
    return 2;
  }
  const found = (await Promise.all(files.map(objections))).flat();
  found.forEach((line) => console.error(line));
  console.log(`${files.length} file(s) read, ${found.length} objection(s)`);
  return found.length === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
