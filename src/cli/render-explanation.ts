/** The answers of `pawl explain`, one under the other. */
import type { ExplainedRun } from './explain.ts';
import type { Paint } from './paint.ts';
import { printable, wrap } from './render-table.ts';

export function renderExplanation(sections: ExplainedRun['sections'], width: number, paint: Paint): string {
  const longest = Math.max(...sections.map(({ title }) => title.length));
  const indent = ' '.repeat(longest + 2);
  return sections
    .map(({ title, sentences }) => {
      const paragraphs = sentences.map((sentence) => wrap(printable(sentence), width - indent.length, indent));
      return `${paint('bold', title.padEnd(longest))}  ${paragraphs.join(`\n${indent}`)}\n`;
    })
    .join('');
}
