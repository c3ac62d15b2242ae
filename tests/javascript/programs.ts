// Programs of a user of the `openai` package: only base URL and key are not the package's own.
// Usage: node programs.js NAME BASE_URL KEY; each prints one JSON object.

import OpenAI from "openai";

type Message = OpenAI.ChatCompletionMessageParam;
type Request = OpenAI.ChatCompletionCreateParamsNonStreaming;
type Routed = OpenAI.ChatCompletion & { routing: { model: string; sticky: boolean } };

const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "read_file",
      description: "Return the text of a file.",
      parameters: {
        type: "object",
        properties: { path: { type: "string" } },
        required: ["path"],
      },
    },
  },
];
const hello: Message[] = [{ role: "user", content: "Hello" }];

async function ask(client: OpenAI, request: Request, more: object): Promise<Routed> {
  return (await client.chat.completions.create({ ...request, ...more })) as Routed;
}

// The plan for quality, the tool steps for latency, one session for both.
async function planThenAct(client: OpenAI): Promise<object> {
  const task = "tests/test_dates.py fails for an empty list. Find out why.";
  const routed = { task: "coding", session: "run-7" };
  const plan = await ask(
    client,
    { model: "auto", max_tokens: 300, messages: [{ role: "user", content: `Plan: ${task}` }] },
    { routing: { ...routed, optimize: "quality" } },
  );
  const messages: Message[] = [
    { role: "system", content: "Read before you answer." },
    { role: "user", content: `${task}\n\n${plan.choices[0]?.message.content}` },
  ];
  const steps: string[] = [];
  for (let step = 0; step < 6; step += 1) {
    const answer = await ask(
      client,
      { model: "auto", max_tokens: 400, messages, tools },
      { routing: { ...routed, optimize: "latency" }, extended_thinking: false },
    );
    const choice = answer.choices[0];
    if (choice === undefined) throw new Error("no choice");
    steps.push(answer.routing.model);
    messages.push(choice.message);
    if (choice.finish_reason !== "tool_calls") break;
    for (const call of choice.message.tool_calls ?? []) {
      if (call.type !== "function") continue;
      const { path } = JSON.parse(call.function.arguments) as { path: string };
      messages.push({ role: "tool", tool_call_id: call.id, content: `# ${path}` });
    }
  }
  return { plan: plan.routing.model, steps, answer: messages.at(-1)?.content };
}

// The package puts fragments of calls together by their index, and wants one count.
async function streamCalls(client: OpenAI): Promise<object> {
  const stream = client.chat.completions.stream({
    model: "auto",
    messages: hello,
    tools,
    stream_options: { include_usage: true },
  });
  const final = await stream.finalChatCompletion();
  const choice = final.choices[0];
  return {
    id: final.id,
    content: choice?.message.content,
    finish: choice?.finish_reason,
    calls: choice?.message.tool_calls?.map((call) =>
      call.type === "function" ? [call.function.name, call.function.arguments] : [],
    ),
    tokens: final.usage?.total_tokens,
  };
}

async function streamThatBreaks(client: OpenAI): Promise<object> {
  let said = "";
  try {
    const stream = await client.chat.completions.create({
      model: "auto",
      messages: hello,
      stream: true,
    });
    for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? "";
  } catch (error) {
    return { said, raised: error instanceof OpenAI.APIError };
  }
  return { said, raised: false };
}

// The second request is over the cap; the package retries a 429 unless it is told not to.
async function capped(client: OpenAI): Promise<object> {
  const once = () =>
    ask(client, { model: "auto", messages: hello }, { routing: { session: "s" } });
  await once();
  try {
    await once();
  } catch (error) {
    if (error instanceof OpenAI.APIError) return { status: error.status, code: error.code };
    throw error;
  }
  return {};
}

async function listModels(client: OpenAI): Promise<object> {
  const names: string[] = [];
  for await (const model of client.models.list()) names.push(model.id);
  return { names };
}

// A stored response is continued by its id.
async function continueResponse(client: OpenAI): Promise<object> {
  const first = await client.responses.create({ model: "auto", input: "Hello" });
  const next = await client.responses.create({
    model: "auto",
    input: "Again",
    previous_response_id: first.id,
  });
  return { said: next.output_text, continues: next.previous_response_id === first.id };
}

const programs: Record<string, (client: OpenAI) => Promise<object>> = {
  planThenAct,
  streamCalls,
  streamThatBreaks,
  capped,
  listModels,
  continueResponse,
};
const [name, baseURL, apiKey] = process.argv.slice(2);
const program = programs[name ?? ""];
if (program === undefined) throw new Error(`no program ${name}`);
console.log(JSON.stringify(await program(new OpenAI({ baseURL, apiKey }))));
