// Signs in at a fake OpenID Connect provider, in a headless Chromium; see `run`.
//   node sign-in.mjs PROGRAM FOLDER
import { createHash, createSign, generateKeyPairSync } from "node:crypto";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { once } from "node:events";
import puppeteer from "puppeteer-core";

const [program, folder] = process.argv.slice(2);
let faults = 0;
let passed = 0;
const check = (what, isSo) => { if (isSo) passed += 1; else { faults += 1; console.log(`FAULT ${what}`); } };

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const base64 = (it) => Buffer.from(it).toString("base64url");
const begun = new Map();
let who = { sub: "42", preferred_username: "bo", name: "Bo Sample", email: "bo@example.org", groups: ["readers"] };
let issuer = "";
let refuses = false;

function idToken(nonce) {
  const now = Math.floor(Date.now() / 1000);
  const head = base64(JSON.stringify({ alg: "RS256", kid: "1" }));
  const body = base64(JSON.stringify({ iss: issuer, aud: "pinakes", iat: now, exp: now + 60, nonce, ...who }));
  return `${head}.${body}.${createSign("RSA-SHA256").update(`${head}.${body}`).sign(privateKey, "base64url")}`;
}

const provider = createServer(async (request, answer) => {
  const url = new URL(request.url, issuer);
  const json = (status, it) => { answer.writeHead(status, { "content-type": "application/json" }); answer.end(JSON.stringify(it)); };
  if (url.pathname === "/.well-known/openid-configuration") {
    return json(200, {
      issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/keys`,
      response_types_supported: ["code"], subject_types_supported: ["public"], id_token_signing_alg_values_supported: ["RS256"],
    });
  }
  if (url.pathname === "/keys") return json(200, { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" }] });
  if (url.pathname === "/authorize") {
    const asked = Object.fromEntries(url.searchParams);
    const code = `code-${begun.size}`;
    begun.set(code, asked);
    answer.writeHead(302, { location: `${asked.redirect_uri}?code=${code}&state=${encodeURIComponent(asked.state)}` });
    return answer.end();
  }
  let body = "";
  for await (const piece of request) body += piece;
  const form = new URLSearchParams(body);
  const asked = begun.get(form.get("code"));
  const proof = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
  if (refuses || !asked || proof !== asked.code_challenge) return json(400, { error: "invalid_grant" });
  begun.delete(form.get("code"));
  return json(200, { access_token: "a", token_type: "Bearer", expires_in: 60, id_token: idToken(asked.nonce) });
});
provider.listen(0, "127.0.0.1");
await once(provider, "listening");
issuer = `http://127.0.0.1:${provider.address().port}`;

const probe = createServer().listen(0, "127.0.0.1");
await once(probe, "listening");
const { port } = probe.address();
await new Promise((done) => probe.close(done));
const base = `http://127.0.0.1:${port}`;
const env = { ...process.env, OIDC_ISSUER: issuer, OIDC_CLIENT_ID: "pinakes", OIDC_CLIENT_SECRET: "secret", OIDC_CALLBACK_URL: `${base}/api/v3/auth/oidc/callback` };
const server = spawn(program, ["serve", "--data", folder, "--listen", `127.0.0.1:${port}`], { env, stdio: ["ignore", "pipe", "inherit"] });
for await (const line of server.stdout) if (String(line).includes("/health/ready")) break;

const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
const path = () => new URL(page.url()).pathname;
await page.goto(`${base}/site/sign-in?next=/site/account`);
const button = await page.$("a[href^='/site/sign-in/provider']");
check("the page leads to the provider", button);
await Promise.all([page.waitForNavigation(), button.click()]);
check(`the sign-in leads back to where it began: ${page.url()}`, path() === "/site/account");
const said = await page.$eval("main", (it) => it.innerText);
check("the account is that of the provider", said.includes("bo") && said.includes("readers") && said.includes("oidc"));
const cookies = await page.cookies();
check("the login's own cookie is gone", !cookies.some((it) => it.name === "pinakes_sign_in"));
check("the session is not for scripts", cookies.find((it) => it.name === "pinakes")?.httpOnly);
// A callback of a login that was not started here is refused, and so is one whose code the provider refuses.
for (const query of ["code=code-0&state=x", "code=code-0", ""]) {
  const other = await (await browser.createBrowserContext()).newPage();
  const answer = await other.goto(`${base}/site/sign-in/callback?${query}`);
  check(`a callback from nowhere (${query}) is refused`, answer.status() === 401 && !(await other.cookies()).some((it) => it.name === "pinakes"));
}
refuses = true;
const third = await (await browser.createBrowserContext()).newPage();
await third.goto(`${base}/site/sign-in`);
await Promise.all([third.waitForNavigation(), third.click("a[href^='/site/sign-in/provider']")]);
check("a code that the provider refuses signs nobody in", (await third.$(".alert")) && !(await third.cookies()).some((it) => it.name === "pinakes"));
await browser.close();
server.kill();
await once(server, "exit");
provider.close();
console.log(`${passed} passed, ${faults} failed`);
process.exit(faults === 0 ? 0 : 1);
