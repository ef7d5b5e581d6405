// Reads the columns of numbers behind a report, which allocator/offline/logs/log_columns.h
// describes.
"use strict";

async function inflated(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The columns by name. Numbers stay below 2^53, because addresses have 48 bits.
function unpack(bytes, columns) {
  const found = {};
  let at = 0;
  for (const column of columns) {
    const numbers = new Float64Array(column.count);
    for (let i = 0; i < column.count; ++i) {
      let byte = bytes[at++], number = byte & 127;
      for (let scale = 128; byte > 127; scale *= 128) {
        byte = bytes[at++];
        number += (byte & 127) * scale;
      }
      numbers[i] = number;
    }
    found[column.name] = numbers;
  }
  return found;
}

function summedUp(differences) {
  for (let i = 1; i < differences.length; ++i) differences[i] += differences[i - 1];
  return differences;
}
const unfolded = number => number % 2 ? -(number + 1) / 2 : number / 2;
