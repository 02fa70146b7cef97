// Opens the demo's pages in a headless Chromium; see `run`.
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
let views = 0;
// Printed when they are found, and all together at the end, so that a truncated log still contains them.
const faults = [];
const fault = (where, what) => { faults.push(`FAULT ${where}: ${what}`); console.log(faults.at(-1)); };

const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.createBrowserContext();
const page = await context.newPage();
// A limit for what hangs, which a busy machine should never reach.
page.setDefaultTimeout(120_000);
let watched = "";
// Errors are provoked here, and one connection is broken on purpose.
const is_meant = (text) => /status of 4\d\d|ERR_CONNECTION_RESET/.test(text);
page.on("console", (it) => { if (it.type() === "error" && !is_meant(it.text())) fault(watched, it.text()); });
page.on("pageerror", (it) => fault(watched, it.message));

async function open(window, path, expected = 200) {
  watched = `${path} (${window.name})`;
  await page.setViewport({ width: window.width, height: 800 });
  // Without motion: a target of a click must not be scrolling away.
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: window.scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.setExtraHTTPHeaders({ "Accept-Language": window.language });
  const answer = await page.goto(base + path, { waitUntil: "load" });
  if (answer.status() !== expected) fault(watched, `status ${answer.status()}, expected ${expected}`);
}

/** Does something that leads to another page, and waits until it is there; gives its answer. */
async function leave(act) {
  const [answer] = await Promise.all([page.waitForNavigation(), act()]);
  return answer;
}
const go = (selector) => leave(() => page.click(selector));
/** Sends a form as a browser without script does: no event is fired. */
const submit = (selector) => leave(() => page.$eval(selector, (it) => setTimeout(() => it.submit())));
const said = () => page.$eval("main", (it) => it.innerText);
const unfold = () => page.$$eval("details", (list) => list.forEach((it) => { it.open = true; }));

async function judge(window) {
  views += 1;
  const before = faults.length;
  await judged(window);
  if (faults.length > before) views -= 1;
}

async function judged(window) {
  const [width, language] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.lang]);
  if (width > window.width) fault(watched, `${width} px wide in a window of ${window.width}`);
  if (language !== window.language) fault(watched, `language ${language}, expected ${window.language}`);
  const client = await page.createCDPSession();
  // axe runs outside the page, whose policy allows no script.
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
  await leave(() => page.keyboard.press("Enter"));
  if (new URL(page.url()).pathname !== "/site/desk") fault("sign-in", `leads to ${page.url()}`);
}

/** Deposits, as somebody would who has no script: the form with a second block, a file. Gives the address of the files. */
async function deposits() {
  const path = "/site/deposits/new";
  await open(WINDOWS[0], path);
  const refused = await submit("form.sheet");
  if (refused.status() !== 422 || !(await page.$(".alert")) || !(await page.$("[id='fault-title/0']"))) fault(path, "an empty form is taken");
  await judge(WINDOWS[0]);
  await page.type("[name='title/0']", "Readings of a browser");
  await page.type("[name='author/0/authorName']", "Sample, Bo");
  await page.type("[name='dsDescription/0/dsDescriptionValue']", "Made by the test of the pages.");
  await page.click("input[name='subject/0']");
  await go("button[value=author]");
  if ((await page.$$("[name^='author/'][name$='/authorName']")).length < 3) fault(page.url(), "no more rows of authors");
  await unfold();
  // The vocabulary of languages has some 8,000 values: one is typed.
  await page.type("[name='language/0']", "Klingonish");
  const unknown = await go("p.row button");
  const faults = await page.$$eval(".fault", (list) => list.map((it) => it.id));
  if (unknown.status() !== 422 || faults.join() !== "fault-language") fault(path, `faults stand at ${faults}: ${(await said()).slice(0, 300)}`);
  await page.$eval("[name='language/0']", (it) => { it.value = "German"; });
  await unfold();
  await page.select("[name='geographicCoverage/0/country']", "Norway");
  await page.type("[name='geographicUnit/0']", "harbour");
  for (const [side, degrees] of [["west", "7.5"], ["east", "3"], ["north", "60"], ["south", "59"]]) await page.type(`[name='geographicBoundingBox/0/${side}Longitude'], [name='geographicBoundingBox/0/${side}Latitude']`, degrees);
  await page.type("[name='dateOfDeposit/0']", "yesterday");
  const wrong = await go("p.row button");
  const near = await page.$$eval(".fault", (list) => list.map((it) => it.id));
  if (wrong.status() !== 422 || near.join() !== "fault-dateOfDeposit/0,fault-geographicBoundingBox") fault(path, `faults stand at ${near}: ${(await said()).slice(0, 300)}`);
  if (!(await page.$eval("details:has([name='geographicUnit/0'])", (it) => it.open))) fault(path, "the block with a fault is folded");
  const kept = await page.$$eval("[name='title/0'], [name='geographicCoverage/0/country'], [name='geographicUnit/0']", (list) => list.map((it) => it.value));
  if (kept.join() !== "Readings of a browser,Norway,harbour") fault(path, `of what was typed there is ${kept}`);
  await judge(WINDOWS[0]);
  await picture("deposit-form-faults");
  await page.$eval("[name='geographicBoundingBox/0/eastLongitude']", (it) => { it.value = "8"; });
  await page.$eval("[name='dateOfDeposit/0']", (it) => { it.value = "2026-02"; });
  await go("p.row button");
  const files = new URL(page.url()).pathname;
  if (!files.startsWith("/site/deposits/files/")) fault(path, `leads to ${files}: ${(await said()).slice(0, 300)}`);
  const edit = files.replace("/files/", "/edit/");
  await open(WINDOWS[0], edit);
  const there = await page.$$eval("[name='language/0'], [name='geographicCoverage/0/country'], [name='geographicUnit/0'], [name='geographicBoundingBox/0/eastLongitude']", (list) => list.map((it) => it.value));
  if (there.join() !== "German,Norway,harbour,8") fault(edit, `of a language and the second block there is ${there}`);
  await open(WINDOWS[0], files);
  await (await page.$("#file")).uploadFile(process.argv[1]);
  await submit("form[data-uploads]");
  if (!(await said()).includes("pages.mjs")) fault(files, "the file is not there");
  return files;
}

async function publish(files) {
  await open(WINDOWS[0], files);
  await go("form:has(input[value=publish]) button");
  const path = new URL(page.url()).pathname;
  if (!path.startsWith("/site/deposit/")) fault(files, `publishing leads to ${path}`);
  return path;
}

/** A file in pieces over a connection that breaks: it must arrive whole. */
async function resumes(files) {
  await open(WINDOWS[0], files);
  // Not a table: the server would ingest it at some point, and its size would change.
  const path = join(tmpdir(), `pinakes readings ${process.pid}.dat`);
  writeFileSync(path, "time,level\n" + "12:00,1.25\n".repeat(1_500_000));
  const size = statSync(path).size;
  let n_broken = 0;
  await page.setRequestInterception(true);
  let release;
  const held = new Promise((done) => { release = done; });
  const breaks = async (request) => {
    const is_later = request.method() === "PUT" && !request.url().endsWith("at=0");
    if (is_later && n_broken++ === 0) return request.abort("connectionreset");
    // The page is checked while it waits.
    if (is_later) await held;
    return request.continue();
  };
  page.on("request", breaks);
  // All messages of the upload are recorded, as they are shown for only a second.
  await page.evaluate(() => {
    globalThis.heard = "";
    new MutationObserver(() => { globalThis.heard += document.querySelector(".uploads [role=status]")?.textContent ?? ""; }).observe(document.querySelector(".uploads"), { subtree: true, childList: true, characterData: true });
  });
  await (await page.$("#file")).uploadFile(path);
  const reloaded = page.waitForNavigation();
  await page.click("form[data-uploads] p button");
  await page.waitForFunction(() => globalThis.heard.includes("broke"));
  await judge(WINDOWS[0]);
  await picture("deposit-upload");
  release();
  await reloaded;
  page.off("request", breaks);
  await page.setRequestInterception(false);
  rmSync(path);
  if (n_broken === 0) fault(files, "nothing was interrupted");
  const text = await said();
  if (!text.includes("pinakes readings")) fault(files, "the file that was interrupted is not there");
  if (size !== 16_500_011) fault(files, `the file had ${size} bytes`);
  if (!text.includes("16.5 MB")) fault(files, `the file is not whole: ${text.slice(0, 600)}`);
}

/** Files that are dropped onto the form, as from a folder's window. */
async function drops(files) {
  await open(WINDOWS[0], files);
  const drag = (type, names) => page.$eval("form[data-uploads]", (form, type, names) => {
    const dataTransfer = new DataTransfer();
    for (const name of names) dataTransfer.items.add(new File([name.repeat(100)], name, { type: "text/plain" }));
    const event = new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true });
    form.querySelector("#file").dispatchEvent(event);
    return [event.defaultPrevented, form.classList.contains("over")];
  }, type, names);
  const expect = (what, found, wanted) => { if (String(found) !== String(wanted)) fault(files, `${what}: taken, marked is ${found}, expected ${wanted}`); };
  expect("files above the form", await drag("dragover", []), [true, true]);
  expect("files that are taken away", await drag("dragleave", []), [false, false]);
  await drag("dragover", []);
  const reloaded = page.waitForNavigation();
  expect("files that are dropped", await drag("drop", ["dropped one.txt", "dropped two.txt"]), [true, false]);
  await reloaded;
  const rows = await page.$$eval("main tbody tr", (list) => list.map((it) => it.innerText));
  for (const name of ["dropped one.txt", "dropped two.txt"]) {
    if (!rows.some((it) => it.includes(name) && /1\.5 (kB|KB)/.test(it))) fault(files, `${name} was dropped: ${rows.join(" | ")}`);
  }
}

/** Asks FOLIO as a client does. */
async function folio(method, path, body) {
  const headers = { "x-okapi-tenant": "default", "content-type": "application/json", ...(folio.token ? { "x-okapi-token": folio.token } : {}) };
  const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) fault(path, `status ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
  folio.token ??= answer.headers.get("x-okapi-token");
  return answer.headers.get("content-type")?.includes("json") ? answer.json() : null;
}

/** A record in ISO 2709. */
function marc(fields) {
  let [directory, data] = ["", ""];
  for (const [tag, text] of fields) {
    directory += tag + String(text.length + 1).padStart(4, "0") + String(data.length).padStart(5, "0");
    data += text + "\x1e";
  }
  const base = 25 + directory.length;
  const number = (it) => String(it).padStart(5, "0");
  return `${number(base + data.length + 1)}nam a22${number(base)}   4500${directory}\x1e${data}\x1d`;
}

/** An import of a good record and of two bad ones; gives the pages of the job and of the bad records, and an instance. */
async function imports() {
  await folio("POST", "/authn/login", { username: "admin", password: "admin-demo" });
  const made = await folio("POST", "/change-manager/jobExecutions", { sourceType: "ONLINE", files: [] });
  const job = made.parentJobExecutionId;
  await folio("PUT", `/change-manager/jobExecutions/${job}/jobProfile`, { id: "e34d7b92-9b83-11eb-a8b3-0242ac130003", name: "x", dataType: "MARC" });
  const good = marc([["001", "browser1"], ["008", "800101s1980    xxu           000 0 eng d"], ["245", "10\x1faRecord of a browser"], ["945", "  \x1fbbrowser-1"]]);
  const half = good.slice(0, good.length - 30);
  const records = [good, half, "this is no MARC record"].map((record, order) => ({ record, order }));
  await folio("POST", `/change-manager/jobExecutions/${job}/records`, { initialRecords: records, recordsMetadata: { last: true, counter: 3, total: 3, contentType: "MARC_RAW" } });
  await open(WINDOWS[0], `/site/imports/${job}`);
  // The page updates the progress of the job by itself.
  await page.waitForFunction(() => !document.querySelector("[data-live]"));
  const bad = await page.$$eval("a[href*='/records/']", (list) => list.map((it) => it.getAttribute("href")));
  const found = await folio("GET", "/instance-storage/instances?query=" + encodeURIComponent('title=="Record of a browser"'));
  return { job: `/site/imports/${job}`, bad, instance: found?.instances?.[0]?.id };
}

/** Edits, as somebody would who has no script. */
async function edits({ job, bad, instance }) {
  if (bad.length !== 3) fault(job, `${bad.length} records instead of 3`);
  if (!instance) fault(job, "no instance was made");
  const dataset = "/site/edit/dataset/20.500.demo/saxs-0002";
  await open(WINDOWS[0], dataset);
  await page.$eval("[name='comment']", (it) => { it.value = "Seen by a browser."; });
  await go("form.sheet > p.row button");
  if (!page.url().includes("/site/dataset/")) fault(dataset, `saving leads to ${page.url()}`);
  // Another user saves while the form is open.
  await open(WINDOWS[0], dataset);
  const since = await page.$eval("[name=since]", (it) => it.value);
  await page.$eval("[name=since]", (it) => { it.value = "2020-01-01T00:00:00.000Z"; });
  const late = await go("form.sheet > p.row button");
  if (late.status() !== 409 || (await page.$eval("[name=since]", (it) => it.value)) !== since) fault(dataset, `a late change gives ${late.status()}`);
  await judge(WINDOWS[0]);
  await picture("edit-conflict");
  const topic = "/site/edit/topic/default/Browser/Test";
  await open(WINDOWS[0], topic);
  await page.type("[name='occurrence.0.role']", "note");
  await go("form.sheet > p.row button");
  if (!page.url().includes("/site/edit/topic/")) fault(topic, "half a row is taken");
  await judge(WINDOWS[0]);
  await page.type("[name='occurrence.0.behaviour']", "markdown");
  await page.type("[name='occurrence.0.string-data']", "Made by *the test* of the pages.");
  await go("form.sheet > p.row button");
  if (!page.url().includes("/t/default/Browser/Test")) fault(topic, `saving leads to ${page.url()}: ${(await said()).slice(0, 300)}`);
  await open(WINDOWS[0], "/site/mapping/new");
  await page.type("#name", "Items of a browser");
  await page.select("#entity", "ITEM");
  await page.type("[name='field.0.path']", "item.barcode");
  await page.type("[name='field.0.value']", "945$b");
  await page.type("#record", instance ?? "");
  await go("button.quiet[value=preview]");
  const made = await said();
  if (!made.includes('"barcode": "browser-1"')) fault("/site/mapping/new", `the preview says ${made.slice(0, 800)}`);
  await judge(WINDOWS[0]);
  await picture("mapping");
  await go("button[value=save]");
  const profile = new URL(page.url()).pathname;
  if (profile === "/site/mapping/new") fault(profile, `the profile is not saved: ${(await said()).slice(0, 300)}`);
  // Changes of MARC fields: a field is added with two subfields, a text is replaced.
  await open(WINDOWS[0], "/site/mapping/new");
  await unfold();
  await page.type("#name", "Changes of a browser");
  await page.select("#entity", "MARC_BIBLIOGRAPHIC");
  await page.select("[name='marc.0.action']", "ADD");
  for (const [cell, text] of [["tag", "590"], ["code", "a"], ["text", "Seen by a browser"]]) await page.type(`[name='marc.0.${cell}']`, text);
  await go("button[value=more-marc]");
  for (const [cell, text] of [["code", "5"], ["text", "HERE"]]) await page.type(`[name='marc.1.${cell}']`, text);
  await page.select("[name='marc.2.action']", "EDIT");
  for (const [cell, text] of [["tag", "245"], ["ind1", "*"], ["ind2", "*"], ["code", "a"], ["find", "Record"]]) await page.type(`[name='marc.2.${cell}']`, text);
  await page.type("#record", instance ?? "");
  await go("button.quiet[value=preview]");
  if (!(await page.$("[id='fault-marc.2']"))) fault("/site/mapping/new", "an edit that says nothing is taken");
  await judge(WINDOWS[0]);
  await page.select("[name='marc.2.subaction']", "REPLACE");
  await page.type("[name='marc.2.replace']", "Story");
  await go("button.quiet[value=preview]");
  const after = await page.$$eval("[aria-labelledby='marc-after']", (list) => list.map((it) => it.innerText).join());
  if (!/590.*Seen by a browser.*HERE/.test(after) || !/245.*Story of a browser/.test(after)) fault("/site/mapping/new", `the record would be ${after}: ${(await said()).slice(0, 800)}`);
  await judge(WINDOWS[0]);
  await picture("mapping-marc");
  await go("button[value=save]");
  const changes = new URL(page.url()).pathname;
  if ((await page.$$eval("[name='marc.2.replace']", (list) => list.map((it) => it.value).join())) !== "Story") fault(changes, `the changes are not saved: ${(await said()).slice(0, 300)}`);
  return [dataset, topic, "/site/topics", "/site/mapping", profile, changes, job, ...bad, "/site/operators?level=WARN"];
}

async function all() {
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

  const files = await deposits();
  await resumes(files);
  await drops(files);
  const imported = await imports();
  const edited = await edits(imported);
  const edit = files.replace("/files/", "/edit/");
  const staff = ["/site/deposits", "/site/deposits/new", files, edit, "/site/account", "/site/users", "/site/desk", "/site/imports", "/site/operators", "/site/dataset/20.500.demo/saxs-0002", ...(title ? [title] : []), ...edited];
  for (const window of WINDOWS) {
    for (const path of staff) {
      await open(window, path);
      await unfold();
      await judge(window);
      const name = { "/site/desk": "desk", "/site/dataset/20.500.demo/saxs-0002": "dataset", "/site/operators": "operators", "/site/deposits/new": "deposit-form", [files]: "deposit-files", "/site/account": "account", "/site/users": "users", [edited[0]]: "edit-dataset", [edited[1]]: "edit-topic", [imported.bad[1]]: "import-record" }[path] ?? (path === title ? "title" : null);
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
}

// An aborted step reports where it was, and counts as a fault.
await all().catch((error) => fault(`${watched}, ${page.url()}`, error.stack));
await browser.close();
console.log([...faults, `${views} passed, ${faults.length} failed`].join("\n"));
process.exit(faults.length === 0 ? 0 : 1);
