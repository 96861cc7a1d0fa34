/** A style sheet that travels inside a chunk, minified (see build.mjs). */
declare module "*.css" {
  const text: string;
  export default text;
}
