/** The shape of a lane's mark, which tells lanes apart without color. Pure. */

const SHAPES = 8;
const OTHERS: readonly (readonly [RegExp, number])[] = [
  [/^(chief|coordinator)/, 5],
  [/^evaluator/, 7],
  [/^ps/, 3],
];

/** 0 to 7: workers and replicas count up from 0, other roles from an offset of their own. */
export function laneShape(lane: string): number {
  const first = OTHERS.find(([role]) => role.test(lane))?.[1] ?? 0;
  return (first + Number(/(\d{1,4})$/.exec(lane)?.[1] ?? 0)) % SHAPES;
}
