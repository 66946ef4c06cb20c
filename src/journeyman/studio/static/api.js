// Calls to the server: every one carries the token of the page's address, in a header.

const parts = () => new URLSearchParams(location.hash.slice(1));

export const place = {
  onchange: () => {},
  get token() { return parts().get("token") ?? ""; },
  get session() { return parts().get("session") ?? ""; },
  set session(name) {
    if (name === this.session) return;
    const now = parts();
    if (name) now.set("session", name); else now.delete("session");
    history.pushState(null, "", "#" + now);
    this.onchange();
  },
};
addEventListener("popstate", () => place.onchange());

export class Refusal extends Error {
  constructor(status, words) { super(words); this.status = status; }
}

async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch("/api/" + path, {
      ...options, credentials: "omit", cache: "no-store",
      headers: { "x-studio-token": place.token, ...options.headers },
    });
  } catch {
    throw new Refusal(0, "The studio does not answer. If it has ended, start it again and open the address that it prints; nothing that was recorded is lost.");
  }
  if (answer.ok) return answer;
  let words = `The studio answered with ${answer.status}.`;
  try { words = (await answer.json()).error ?? words; } catch { /* no JSON */ }
  throw new Refusal(answer.status, words);
}

export const get = async (path) => (await request(path)).json();

export const post = async (path, body = {}) => (await request(path, {
  method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" },
})).json();

export async function download(path) {
  const answer = await request(path);
  const name = (answer.headers.get("content-disposition") ?? "").match(/filename="([^"]+)"/)?.[1] ?? "file";
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  return name;
}

// Events of a session, until `signal` aborts; the stream is read by fetch so that it carries the token.
export async function listen(name, signal, onMessage, onConnection) {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const answer = await request(`sessions/${name}/events`, { signal });
      onConnection(true);
      wait = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const whole = text.split("\n\n");
        text = whole.pop();
        for (const one of whole) if (one.startsWith("data: ")) onMessage(JSON.parse(one.slice(6)));
      }
      if (!signal.aborted) onConnection(false);
    } catch (fault) {
      if (signal.aborted) return;
      onConnection(false, fault);
      if (fault.status === 401) return;
    }
    if (signal.aborted) return;
    await new Promise((next) => setTimeout(next, wait));
    wait = Math.min(2 * wait, 8000);
  }
}
