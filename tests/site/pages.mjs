// Opens the demo's pages in a headless Chromium; see `run`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const base = process.argv[2];
const pictures = process.env.PICTURES;
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const WINDOWS = [
  { name: "wide light", width: 1100, scheme: "light", language: "en" },
  { name: "narrow dark", width: 320, scheme: "dark", language: "de" },
  { name: "wide dark", width: 1100, scheme: "dark", language: "de" },
  { name: "narrow light", width: 320, scheme: "light", language: "en" },
];
let faults = 0;
let views = 0;
const fault = (where, what) => { faults += 1; console.log(`FAULT ${where}: ${what}`); };

const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.createBrowserContext();
const page = await context.newPage();
let watched = "";
page.on("console", (it) => { if (it.type() === "error" && !/status of 4\d\d/.test(it.text())) fault(watched, it.text()); });
page.on("pageerror", (it) => fault(watched, it.message));

async function open(window, path, expected = 200) {
  watched = `${path} (${window.name})`;
  await page.setViewport({ width: window.width, height: 800 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: window.scheme }]);
  await page.setExtraHTTPHeaders({ "Accept-Language": window.language });
  const answer = await page.goto(base + path, { waitUntil: "load" });
  if (answer.status() !== expected) fault(watched, `status ${answer.status()}, expected ${expected}`);
}

async function judge(window) {
  views += 1;
  const before = faults;
  await judged(window);
  if (faults > before) views -= 1;
}

async function judged(window) {
  const [width, language] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.lang]);
  if (width > window.width) fault(watched, `${width} px wide in a window of ${window.width}`);
  if (language !== window.language) fault(watched, `language ${language}, expected ${window.language}`);
  const client = await page.createCDPSession();
  // axe runs beside the page, whose policy allows no script.
  const { frameTree } = await client.send("Page.getFrameTree");
  const { executionContextId } = await client.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const run = (expression) => client.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
  await run(axe + ";0");
  const said = await run(`axe.run(document, {runOnly: ${JSON.stringify(RULES)}}).then(it => it.violations.map(v => v.id + ": " + v.help + " – " + v.nodes.slice(0, 3).map(n => n.target.join(" ")).join("; ")))`);
  if (said.exceptionDetails) fault(watched, JSON.stringify(said.exceptionDetails));
  for (const it of said.result.value ?? []) fault(watched, it);
  await client.detach();
}

async function picture(name) {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, clip: { x: 0, y: 0, width: page.viewport().width, height: 800 } });
}

/** The first link of a list of hits, or nothing. */
async function firstHit(scope) {
  await open(WINDOWS[0], `/site/search?in=${scope}&q=`);
  return page.evaluate(() => document.querySelector(".hits a")?.getAttribute("href"));
}

async function signIn() {
  await open(WINDOWS[0], "/site/sign-in?next=/site/desk");
  await page.type("#username", "admin");
  await page.type("#password", "admin-demo");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  if (new URL(page.url()).pathname !== "/site/desk") fault("sign-in", `leads to ${page.url()}`);
}

const paths = ["/", "/site/search", "/site/search?q=x-ray", "/site/search?q=&in=datasets&f=type:raw", "/site/sign-in", "/site/dataset/20.500.demo/saxs-0002", "/site/work/10.5555/demo.1"];
const deposit = await firstHit("deposits");
if (deposit) paths.push(deposit, deposit.replace("/site/deposit/", "/site/differences/"), "/site/search?q=gaug");
else fault("demo", "no deposit is found");
await open(WINDOWS[0], deposit);
const previews = await page.evaluate(() => [...document.querySelectorAll("a[href^='/site/preview/']")].map((it) => it.getAttribute("href")));
if (previews.length !== 3) fault("demo", `${previews.length} previews of 3 files`);
paths.push(...previews);
for (const window of WINDOWS) {
  for (const path of [...new Set(paths)]) {
    const isHidden = path.includes("saxs-0002");
    await open(window, path, isHidden ? 404 : 200);
    await judge(window);
    if (path === "/" && window.name === "wide light") await picture("front");
    if (path === "/" && window.name === "narrow dark") await picture("front-narrow");
    if (path.includes("/work/") && window.name === "wide light") await picture("work");
    if (path === deposit && window.name === "wide light") await picture("deposit");
    if (path === previews[0] && window.name === "narrow dark") await picture("preview-narrow");
    if (path.includes("/differences/") && window.name === "wide dark") await picture("differences");
  }
}
await signIn();
const title = await firstHit("titles");
if (!title) fault("demo", "no title is found");

/** Deposits, as somebody would who has no script: the form, a file, publication. Gives the deposit's address. */
async function deposits() {
  await open(WINDOWS[0], "/site/deposits/new");
  const [refused] = await Promise.all([page.waitForNavigation(), page.evaluate(() => document.querySelector("form.sheet").submit())]);
  if (refused.status() !== 422 || !(await page.$(".alert"))) fault("/site/deposits/new", "an empty form is taken");
  await judge(WINDOWS[0]);
  await page.type("#title", "Readings of a browser");
  await page.type("[name='author.0.name']", "Sample, Bo");
  await page.type("#description", "Made by the test of the pages.");
  await page.click("input[name=subject]");
  await Promise.all([page.waitForNavigation(), page.click("button[value=author]")]);
  if ((await page.$$("[name^='author.'][name$='.name']")).length < 3) fault(page.url(), "no more rows of authors");
  await Promise.all([page.waitForNavigation(), page.click("p.row button")]);
  const files = new URL(page.url()).pathname;
  if (!files.startsWith("/site/deposits/files/")) fault("/site/deposits/new", `leads to ${files}: ${await page.$eval("main", (it) => it.innerText.slice(0, 300))}`);
  const input = await page.$("#file");
  await input.uploadFile(process.argv[1]);
  await page.evaluate(() => { const input = document.querySelector("#file"); input.closest("form").requestSubmit(); });
  await page.waitForNavigation();
  if (!(await page.$eval("main", (it) => it.innerText)).includes("pages.mjs")) fault(files, "the file is not there");
  return files;
}

async function publish(files) {
  await open(WINDOWS[0], files);
  const button = await page.$("form:has(input[value=publish]) button");
  await Promise.all([page.waitForNavigation(), button.click()]);
  const path = new URL(page.url()).pathname;
  if (!path.startsWith("/site/deposit/")) fault(files, `publishing leads to ${path}`);
  return path;
}

const files = await deposits();
const edit = files.replace("/files/", "/edit/");
const staff = ["/site/deposits", "/site/deposits/new", files, edit, "/site/account", "/site/users", "/site/desk", "/site/imports", "/site/operators", "/site/dataset/20.500.demo/saxs-0002", ...(title ? [title] : [])];
for (const window of WINDOWS) {
  for (const path of staff) {
    await open(window, path);
    await judge(window);
    const name = { "/site/desk": "desk", "/site/dataset/20.500.demo/saxs-0002": "dataset", "/site/operators": "operators", "/site/deposits/new": "deposit-form", [files]: "deposit-files", "/site/account": "account", "/site/users": "users" }[path] ?? (path === title ? "title" : null);
    if (name && window.name === "wide light") await picture(name);
  }
}
const published = await publish(files);
await open(WINDOWS[0], "/site/users");
const user = await page.evaluate(() => document.querySelector("a[href^='/site/users/']")?.getAttribute("href"));
for (const window of WINDOWS) {
  for (const path of [published, user]) {
    await open(window, path);
    await judge(window);
  }
}
await browser.close();
console.log(`${views} passed, ${faults} failed`);
process.exit(faults === 0 ? 0 : 1);
