/**
 * Builds the front end, main.ts and what it imports from each feature, into app/web/static/dist. --watch rebuilds on changes; --tests builds and runs the unit tests.
 *
 * app.js, app.css and theme.js keep their names (the server adds a version to their URLs); the chunks and fonts that
 * they load have a hash in their names.
 */

import { spawnSync } from "node:child_process";
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress } from "node:zlib";

import * as esbuild from "esbuild";
import subsetFont from "subset-font";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..");
const dist = join(here, "web/static/dist");

const brotli = promisify(brotliCompress);

const common = {
  bundle: true,
  minify: true,
  target: ["es2022", "chrome123", "firefox128", "safari17.5"],
  logLevel: "info",
};

/** A style sheet that a script imports becomes text in the script's chunk, so that the first load is smaller. */
const sheets = {
  name: "sheets",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await esbuild.transform(await readFile(path, "utf8"), {
        loader: "css",
        minify: true,
        target: common.target,
      });
      return { contents: code, loader: "text" };
    });
  },
};
/** Every chunk counts as importing main.ts, so that what chunks share with it is one file, not a file for each set of chunks. */
const scripts = {
  ...common,
  plugins: [sheets],
  entryPoints: { app: join(here, "main.ts") },
  inject: [join(here, "main.ts")],
  outdir: dist,
  format: "esm",
  splitting: true,
  chunkNames: "chunks/[name]-[hash]",
};
/** Scripts of documents in a sandbox, which draw a learner's plot; modules would need an origin. */
const plots = {
  ...common,
  entryPoints: ["plotly", "vega"].map((name) => join(here, `runs/frontend/plots/${name}.ts`)),
  format: "iife",
  legalComments: "none",
};
const theme = { ...common, entryPoints: [join(here, "web/frontend/theme.ts")], outdir: dist, format: "iife" };

/** The characters and features of each font that the pages use; code is set without ligatures. 49 of 91 KB. */
const fonts = {
  "inter-latin-wght-normal": {
    variationAxes: { wght: { min: 400, max: 700 } },
    keepFeatures: ["kern", "ccmp", "locl", "tnum"],
  },
  "source-serif-4-latin-600-normal": { keepFeatures: ["kern", "liga", "ccmp", "locl", "mark", "mkmk"] },
  "jetbrains-mono-latin-400-normal": { keepFeatures: ["ccmp", "locl", "mark", "mkmk"] },
};
const cutFonts = {
  name: "cut-fonts",
  setup(build) {
    build.onLoad({ filter: new RegExp(`(?:${Object.keys(fonts).join("|")})\\.woff2$`) }, async ({ path }) => ({
      contents: await subsetFont(await readFile(path), latin(), {
        targetFormat: "woff2",
        ...fonts[basename(path, ".woff2")],
      }),
      loader: "file",
    }));
  },
};

/** The character ranges that fonts.css declares for these fonts. */
function latin() {
  const [single, ranges] = [
    "\u0131\u02da\u02dc\u02c6\u20ac\u2122\u2191\u2193\u2212\u2215",
    [
      [0x20, 0xff],
      [0x152, 0x153],
      [0x2bb, 0x2bc],
      [0x2000, 0x206f],
    ],
  ];
  return (
    single +
    ranges
      .flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => String.fromCodePoint(from + i)))
      .join("")
  );
}

const styles = {
  ...common,
  plugins: [cutFonts],
  entryPoints: {
    app: join(here, "main.css"),
    admin: join(here, "admin/frontend/admin.css"),
    achievements: join(here, "progress/frontend/achievements.css"),
    comments: join(here, "comments/frontend/comments.css"),
    exercises: join(here, "exercises/frontend/exercises.css"),
    feedback: join(here, "feedback/frontend/feedback.css"),
    groups: join(here, "groups/frontend/groups.css"),
    notifications: join(here, "notifications/frontend/notifications.css"),
    playground: join(here, "playground/frontend/playground.css"),
    search: join(here, "search/frontend/search.css"),
  },
  outdir: dist,
  loader: { ".woff2": "file" },
  assetNames: "fonts/[name]-[hash]",
};

/** Builds into another folder, which then replaces the old one, so that a running server never sees half a build. */
async function build() {
  const [fresh, old] = [`${dist}-${process.pid}`, `${dist}-old-${process.pid}`];
  const quiet = { outdir: fresh, logLevel: "warning" };
  await mkdir(fresh, { recursive: true });
  const built = [scripts, theme, styles].map((options) => esbuild.build({ ...options, ...quiet }));
  await Promise.all([...built, esbuild.build({ ...plots, ...quiet, outdir: join(fresh, "plots") })]);
  await cp(join(here, "web/frontend/logo.svg"), join(fresh, "logo.svg"));
  await Promise.all([fresh, join(fresh, "chunks")].map(compress));
  await rename(dist, old).catch(() => undefined);
  await rename(fresh, dist);
  await rm(old, { recursive: true, force: true });
}

/** Writes each script and style sheet again with Brotli, a tenth smaller than with gzip, which the server makes itself. */
async function compress(folder) {
  const names = (await readdir(folder)).filter((name) => /\.(js|css)$/.test(name));
  const write = async (file) => writeFile(`${file}.br`, await brotli(await readFile(file)));
  await Promise.all(names.map((name) => write(join(folder, name))));
}

async function watch() {
  await build();
  for (const options of [scripts, theme, styles]) await (await esbuild.context(options)).watch();
}

/** The unit tests are TypeScript: they are bundled separately and run by node's test runner. */
async function test() {
  const tests = join(root, "tests/unit/app");
  const out = join(root, "node_modules/.cache/lockstep-tests");
  await rm(out, { recursive: true, force: true });
  const names = (await readdir(tests, { recursive: true })).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...common,
    plugins: [sheets],
    minify: false,
    target: "node20",
    platform: "node",
    format: "esm",
    sourcemap: "inline",
    logLevel: "warning",
    entryPoints: names.map((name) => join(tests, name)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
  });
  const files = names.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
  const run = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], {
    stdio: "inherit",
    cwd: root,
  });
  process.exitCode = run.status ?? 1;
}

if (process.argv.includes("--tests")) await test();
else if (process.argv.includes("--watch")) await watch();
else await build();
