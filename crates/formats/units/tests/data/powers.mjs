// Makes powers.txt: base, exponent and Math.pow of them, as the bits of doubles in hexadecimal.
// Run with Node 22: node powers.mjs > powers.txt
const box = new Float64Array(1);
const bits = new BigUint64Array(box.buffer);
const hex = (x) => { box[0] = x; return bits[0].toString(16).padStart(16, '0'); };
const bases = [0.3048, 0.0254, 1609.344, 0.00045359237, 60, 3600, 86400, 1.602176565e-19, Math.PI / 180, 5 / 9,
  6894.75729276459, 1024, 133.322, 0.201168, 0.9144, 5e-324, 1e-310, 1e300, 1.5, 1.2247, 1.7321];
for (let exponent = -30; exponent <= 30; exponent++) bases.push(Number(`1e${exponent}`));
let state = 1;
const random = () => { state = (state * 48271) % 2147483647; return state / 2147483647; };
for (let i = 0; i < 100; i++) bases.push(Math.exp((random() - 0.5) * 80));
const exponents = [-12, -6, -4, -3, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 0.333, 7.25];
console.log('# Node 22, V8 12.4. Made by powers.mjs.');
for (const base of bases) for (const exponent of exponents) console.log(hex(base), hex(exponent), hex(Math.pow(base, exponent)));
