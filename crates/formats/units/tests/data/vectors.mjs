// Makes si.tsv and convert.tsv with mathjs, set up as the SciCat backend does it.
// Run with Node 22 beside an installed mathjs 15.2: node vectors.mjs
//
// si.tsv:      value, unit, value in SI, SI unit; `-` twice where mathjs knows no conversion.
// convert.tsv: value, unit, unit to convert to, result and the unit as mathjs prints it; `-` twice where it refuses.
// Fields are JSON, split by tabs.
import fs from 'fs';
import { Unit, createUnit, unit } from 'mathjs';

const isLetter = Unit.isValidAlpha;
Unit.isValidAlpha = (c) => isLetter(c) || c === 'Å';
createUnit('Å', '1 angstrom');

const toSi = (value, text) => {
  try {
    const known = text.normalize('NFC');
    const result = unit(value, known).to(unit(known).toSI().toJSON().unit).toJSON();
    if (typeof result.value !== 'number' || !Number.isFinite(result.value)) return null;
    return [result.value, result.unit];
  } catch { return null; }
};
const convert = (value, from, to) => {
  try {
    const result = unit(value, from.normalize('NFC')).to(to.normalize('NFC')).toJSON();
    if (typeof result.value !== 'number' || !Number.isFinite(result.value)) return null;
    return [result.value, result.unit];
  } catch { return null; }
};

let state = 7;
const random = (n) => { state = (state * 48271) % 2147483647; return state % n; };
const values = [1, 20, -3.5, 0.1, 1234.5678, 1e-9, 6.02e23, 0, 293.15, 3];
const value = () => values[random(values.length)];

const names = Object.keys(Unit.UNITS).filter((it) => it !== 'VAR');
const texts = [...names];
// Every prefix of every family, on one unit of it.
const families = new Map();
for (const name of names) {
  const prefixes = Object.keys(Unit.UNITS[name].prefixes);
  const family = prefixes.join();
  if (!families.has(family)) families.set(family, [name, prefixes]);
}
for (const [name, prefixes] of families.values()) for (const prefix of prefixes) texts.push(prefix + name);
// Prefixes that do not belong to the unit, and names that end in several units.
texts.push('kmeter', 'kilom', 'mÅ', 'kft', 'kmin', 'kh', 'mmin', 'dag', 'cd', 'mcd', 'Pa', 'hPa', 'kPa', 'mm2', 'cm3', 'MMBTU', 'kBTU',
  'mA', 'mAh', 'kWh', 'MeV', 'keV', 'meV', 'ueV', 'GHz', 'THz', 'mT', 'uT', 'nm', 'um', 'pm', 'fm', 'mol', 'mmol', 'umol', 'ms', 'us', 'ns',
  'mrad', 'urad', 'mdeg', 'millidegree', 'kohm', 'kiloohm', 'Mohm', 'KiB', 'MiB', 'kb', 'kbit', 'kilobits', 'mbit', 'ml', 'uL', 'mlitre',
  'Gbytes', 'gigabytes', 'kibibytes', 'exibytes', 'Eib', 'PB', 'mbar', 'millibar', 'ubar', 'kbar', 'Torr', 'torr', 'mTorr', 'Angstrom', 'inches');
// Spellings of the ångström and letters beyond ASCII.
texts.push('Å', 'A\u030a', '\u212b', 'Å^-1', '1/Å', '\u212b^-1', 'kg/Å', 'µm', 'μm', 'Ω', '\u212a', 'm\u212a', '°C', '°', 'ﬀ', 'm²', 'K\u0301');
// Compounds.
const parts = ['m', 'mm', 'kg', 's', 'K', 'eV', 'keV', 'N', 'J', 'A', 'V', 'mol', 'rad', 'bits', 'cd', 'ft', 'min', 'h', 'L', 'mbar', 'deg', 'degC', 'g', 'Pa', 'cm'];
const powers = ['', '', '', '^2', '^3', '^-1', '^-2', '^0.5', '^1.5', '^ 2', ' ^2', '^-0.5', '^4', '^+2', '^1e1', '^0', '^-3'];
const operators = ['*', '/', ' ', ' * ', ' / ', '  '];
for (let i = 0; i < 400; i++) {
  const factor = () => parts[random(parts.length)] + powers[random(powers.length)];
  let text = factor();
  for (let n = random(4); 0 < n; n--) {
    const op = operators[random(operators.length)];
    text += op + (random(4) === 0 ? `(${factor()}${operators[random(operators.length)]}${factor()})` : factor());
  }
  texts.push(text);
}
texts.push('mm/s', 'm/s^2', 'kg m^2 / s^2', '(kg m^2)/(s^3 A)', 'W/(m^2 K)', 'W/m^2/K', 'J/(kg K)', 'm/(s/kg)', '((m))', '(m)(s)', 'm(s)', '(m s)^2',
  'counts/s', '1/s', '1 / s', '10 mm', '2.5e3 mm', '-3 m', '1e-3m', '4erg', '4e', '.5 m', '. m', '5. m', '* m', '/ s', '1*m', '1//s', 'm*', 'm/', 'm//s',
  'm**s', '(m', 'm)', '()', '( )', '(m/)', 'm^', 'm^a', 'm^^2', 'm^-', 'm^(2)', 'm.s', 'm-s', 'm+s', 'm,s', 'm_s', 'm\u00a0s', 'm\ns', 'm\ts', ' m ', '\tm', '', ' ', '5',
  '%', 'counts', 'arb', 'a.u.', 'arb. units', 'px', 'pixel', 'rpm', 'dB', 'mm/m', 'm/m', 'rad/rad', 'm s/s', 'degC m/m', 'K/degC', 'degC/min', 'degC^2', 'degC^1', 'degC^1.0',
  'degF', 'mdegC', 'kelvin', 'mK', 'millikelvin', 'celsius', 'kilocelsius', 'fahrenheit', 'rankine', 'degR', 'm0', 'm2', 'm4', 'm 2', 'm2 m2', 'm1s', 'H2O', 'e', 'E3',
  'constructor', '__proto__', 'toString', 'hasOwnProperty', 'VA', 'mVA', 'm^1e-13', 'm^1e-10 s', 'm^123456789', 's^1e21', 'm^1e400', 'A/m', 'kg/mol', 'mol/L', 'g/cm^3', 'mg/ml',
  'N m', 'N*m', 'Nm', 'kN/m', 'T m', 'V/m', 'F/m', 'ohm m', 'S/m', 'Wb/m^2', 'cd/m^2', 'lm', 'lux', 'Bq', 'Gy', 'Sv', 'u', 'amu', 'year', 'months', 'ounce', 'psi', 'atm', 'mmHg');

const line = (fields) => fields.map((it) => JSON.stringify(it)).join('\t');
const si = [];
for (const text of new Set(texts)) {
  for (let n = 0; n < 2; n++) {
    const v = n === 0 ? 1 : value();
    si.push(line([v, text, ...(toSi(v, text) ?? ['-', '-'])]));
  }
}
fs.writeFileSync(new URL('si.tsv', import.meta.url), si.join('\n') + '\n');

const pairs = [['bar', 'mbar'], ['degC', 'degF'], ['degF', 'degC'], ['fahrenheit', 'celsius'], ['K', 'celsius'], ['degC', 'K'], ['degR', 'degC'], ['degF', 'K'], ['K', 'degF'], ['degC', 'mK'],
  ['degC', 'degC m/m'], ['degC m/m', 'K'], ['degC', 'mdegC'], ['mm', 'inch'], ['km/h', 'm/s'], ['mile/hour', 'm s^-1'], ['J', 'keV'], ['keV', 'J'], ['eV', 'kg m^2/s^2'], ['GB', 'MiB'],
  ['deg', 'rad'], ['L', 'mm^3'], ['m', 's'], ['m', '10 mm'], ['10 mm', 'm'], ['m', 'counts'], ['counts', 'm'], ['1/s', 'kHz'], ['Hz', 'min^-1'], ['N m', 'J'], ['W h', 'kWh'], ['Å', 'nm'], ['nm', '\u212b'],
  ['m/m', 'mm/m'], ['mbar', 'Pa'], ['g/cm^3', 'kg/m^3'], ['VA', 'W'], ['ft^3', 'gallon'], ['m^0', 'rad/rad'], ['degC/min', 'K/s'], ['s', '(s)'], ['m^2', 'm2'], ['T', 'Wb / m^2'], ['celsius', 'celsius'], ['mm', 'mm']];
const conversions = [];
for (const [from, to] of pairs) for (const v of [1, 20, -40.25, 285.123]) conversions.push(line([v, from, to, ...(convert(v, from, to) ?? ['-', '-'])]));
fs.writeFileSync(new URL('convert.tsv', import.meta.url), conversions.join('\n') + '\n');
