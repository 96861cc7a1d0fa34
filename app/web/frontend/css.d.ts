/** A minified style sheet inside a chunk (see build.mjs). */
declare module "*.css" {
  const text: string;
  export default text;
}
