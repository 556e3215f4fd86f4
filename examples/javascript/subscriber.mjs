// A durable subscriber: prints each Job that has ended, including those that ended while it was away. An event is a NATS message
// with JSON in it, so the plain client suffices.
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const url = new URL(process.env.NATS_URL ?? "nats://127.0.0.1:4222");
const nc = await connect({
  servers: url.host,
  user: decodeURIComponent(url.username) || undefined,
  pass: decodeURIComponent(url.password) || undefined,
  tls: url.protocol === "tls:" ? {} : undefined,
  maxReconnectAttempts: -1,
});
const js = jetstream(nc, { apiPrefix: process.env.NATS_API_PREFIX ?? "$JS.API" });
const consumer = await js.consumers.get(process.env.STREAM ?? "jobstream_default_events", process.env.CONSUMER ?? "javascript");

// An event that is redelivered after a lost acknowledgement is printed once; a program that must remember across restarts stores
// source and id along with its work.
const told = new Set();

const messages = await consumer.consume({ max_messages: 100 });
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => messages.stop());
for await (const m of messages) {
  const event = read(m);
  if (event?.type === "dev.jobstream.job.finish.v1" && !told.has(key(event))) {
    const { job, result, reason, durationSeconds } = event.data;
    console.log(`${job.namespace}/${job.name} ${result} (${reason}) after ${durationSeconds} s`);
    told.add(key(event));
  }
  m.ack(); // after the work: a crash before this has the event redelivered
}
await nc.drain();

function key(event) {
  return JSON.stringify([event.source, event.id]);
}

// read returns undefined for a message that is not an event, and would not be one after a redelivery either. In binary mode, which an
// operator may choose, the attributes are headers.
function read(m) {
  const attribute = (name) => decodeURIComponent(m.headers?.get(`ce-${name}`) ?? "");
  try {
    return attribute("type") ? { type: attribute("type"), source: attribute("source"), id: attribute("id"), data: m.json() } : m.json();
  } catch (err) {
    console.error(`${m.subject}, sequence ${m.seq}: ${err.message}`);
  }
}
