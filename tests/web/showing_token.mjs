// Has every request of a Node program carry our token: MCP's conformance suite knows no way to be told one.
import http from "node:http";
import { createRequire, syncBuiltinESMExports } from "node:module";

const shown = `Bearer ${process.env.QUAID_TOKEN}`;
const undici = createRequire(process.argv[1])("undici");

const pairs = (headers) => {
  if (Array.isArray(headers)) return headers;
  if (typeof headers?.entries === "function") return [...headers.entries()].flat();
  return Object.entries(headers ?? {}).flat();
};
const showing = (dispatch) => (asked, handler) =>
  dispatch({ ...asked, headers: [...pairs(asked.headers), "authorization", shown] }, handler);
undici.setGlobalDispatcher(new undici.Agent().compose(showing));

const request = http.request;
http.request = (...given) => {
  const options = given.find((each) => typeof each === "object" && !(each instanceof URL));
  if (options) options.headers = { ...options.headers, authorization: shown };
  return request(...given);
};
syncBuiltinESMExports();
