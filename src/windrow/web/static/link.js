// The connection: questions with answers, updates in between, and a new connection when the old one is lost.

export class Link {
  // heard(message) is called with everything that answers no question; changed(isOpen) when the connection comes or goes.
  constructor(heard, changed) {
    this.heard = heard;
    this.changed = changed;
    this.waiting = new Map();
    this.number = 0;
    this.delay = 250;
    this.open();
  }

  get isOpen() { return this.socket.readyState === WebSocket.OPEN; }

  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = this.socket = new WebSocket(`${scheme}//${location.host}/socket`);
    socket.addEventListener("open", () => { this.delay = 250; this.changed(true); });
    socket.addEventListener("message", event => this.receive(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      for (const { refuse } of this.waiting.values()) refuse(new Error("The connection was lost."));
      this.waiting.clear();
      this.changed(false);
      setTimeout(() => this.open(), this.delay);
      this.delay = Math.min(2 * this.delay, 5000);
    });
  }

  receive(message) {
    const asked = message.id === undefined || message.id === null ? undefined : this.waiting.get(message.id);
    if (asked === undefined) { this.heard(message); return; }
    this.waiting.delete(message.id);
    if (message.type === "error") asked.refuse(new Error(message.message));
    else asked.answer(message);
  }

  // Ask, and get the answer; rejected with the server's words if it is an error.
  ask(message) {
    const id = ++this.number;
    return new Promise((answer, refuse) => {
      if (!this.isOpen) { refuse(new Error("There is no connection to the server.")); return; }
      this.waiting.set(id, { answer, refuse });
      this.socket.send(JSON.stringify({ ...message, id }));
    });
  }

  // The same where the number of the question is needed before the answer is there.
  askNumbered(message) {
    const answer = this.ask(message);
    return { number: this.number, answer };
  }
}
