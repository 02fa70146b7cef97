//! Every unit name of the language, in the order in which a prefixed name is looked up.
//!
//! Source: the unit table of mathjs 15.2 (`lib/esm/type/unit/Unit.js`), read from the running library by
//! `tests/data/vectors.mjs`, with `Å` as the `SciCat` backend adds it. Left out: `VAR`, whose factor is an
//! imaginary number. Order matters: of two units that end a text, the first that accepts the rest as a prefix
//! wins.

use crate::prefix::Family;

/// Exponents of mass, length, time, current, temperature, luminous intensity, amount, angle and information.
pub(crate) type Dimensions = [i8; 9];

/// Symbols of the base units, in the order of [`Dimensions`].
pub(crate) const BASE_SYMBOLS: [&str; 9] = ["kg", "m", "s", "A", "K", "cd", "mol", "rad", "bits"];

const LENGTH: Dimensions = [0, 1, 0, 0, 0, 0, 0, 0, 0];
const AREA: Dimensions = [0, 2, 0, 0, 0, 0, 0, 0, 0];
const VOLUME: Dimensions = [0, 3, 0, 0, 0, 0, 0, 0, 0];
const MASS: Dimensions = [1, 0, 0, 0, 0, 0, 0, 0, 0];
const TIME: Dimensions = [0, 0, 1, 0, 0, 0, 0, 0, 0];
const FREQUENCY: Dimensions = [0, 0, -1, 0, 0, 0, 0, 0, 0];
const ANGLE: Dimensions = [0, 0, 0, 0, 0, 0, 0, 1, 0];
const CURRENT: Dimensions = [0, 0, 0, 1, 0, 0, 0, 0, 0];
const TEMPERATURE: Dimensions = [0, 0, 0, 0, 1, 0, 0, 0, 0];
const AMOUNT: Dimensions = [0, 0, 0, 0, 0, 0, 1, 0, 0];
const LUMINOUS_INTENSITY: Dimensions = [0, 0, 0, 0, 0, 1, 0, 0, 0];
const FORCE: Dimensions = [1, 1, -2, 0, 0, 0, 0, 0, 0];
const ENERGY: Dimensions = [1, 2, -2, 0, 0, 0, 0, 0, 0];
const POWER: Dimensions = [1, 2, -3, 0, 0, 0, 0, 0, 0];
const PRESSURE: Dimensions = [1, -1, -2, 0, 0, 0, 0, 0, 0];
const CHARGE: Dimensions = [0, 0, 1, 1, 0, 0, 0, 0, 0];
const CAPACITANCE: Dimensions = [-1, -2, 4, 2, 0, 0, 0, 0, 0];
const POTENTIAL: Dimensions = [1, 2, -3, -1, 0, 0, 0, 0, 0];
const RESISTANCE: Dimensions = [1, 2, -3, -2, 0, 0, 0, 0, 0];
const INDUCTANCE: Dimensions = [1, 2, -2, -2, 0, 0, 0, 0, 0];
const CONDUCTANCE: Dimensions = [-1, -2, 3, 2, 0, 0, 0, 0, 0];
const MAGNETIC_FLUX: Dimensions = [1, 2, -2, -1, 0, 0, 0, 0, 0];
const FLUX_DENSITY: Dimensions = [1, 0, -2, -1, 0, 0, 0, 0, 0];
const INFORMATION: Dimensions = [0, 0, 0, 0, 0, 0, 0, 0, 1];

/// The zero of a temperature scale; every other unit is [`Scale::Absolute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Zero is zero.
    Absolute,
    /// Zero is 273.15 K.
    Celsius,
    /// Zero is 459.67 degrees of 5/9 K.
    Fahrenheit,
}

/// One name of a unit.
#[derive(Debug)]
pub(crate) struct BaseUnit {
    /// The name, also used for printing.
    pub(crate) name: &'static str,
    /// How many of the coherent SI unit one of this is.
    pub(crate) factor: f64,
    /// What it measures.
    pub(crate) dimensions: Dimensions,
    /// Which prefixes it takes.
    pub(crate) family: Family,
    /// The scale that defines its zero.
    pub(crate) scale: Scale,
}

const fn unit(name: &'static str, factor: f64, dimensions: Dimensions, family: Family) -> BaseUnit {
    scaled(name, factor, dimensions, family, Scale::Absolute)
}

const fn scaled(
    name: &'static str,
    factor: f64,
    dimensions: Dimensions,
    family: Family,
    scale: Scale,
) -> BaseUnit {
    BaseUnit { name, factor, dimensions, family, scale }
}

/// All names, in the order of the search.
pub(crate) const UNITS: &[BaseUnit] = &[
    unit("meter", 1.0, LENGTH, Family::Long),
    unit("inch", 0.0254, LENGTH, Family::None),
    unit("foot", 0.3048, LENGTH, Family::None),
    unit("yard", 0.9144, LENGTH, Family::None),
    unit("mile", 1609.344, LENGTH, Family::None),
    unit("link", 0.201168, LENGTH, Family::None),
    unit("rod", 5.0292, LENGTH, Family::None),
    unit("chain", 20.1168, LENGTH, Family::None),
    unit("angstrom", 1e-10, LENGTH, Family::None),
    unit("m", 1.0, LENGTH, Family::Short),
    unit("in", 0.0254, LENGTH, Family::None),
    unit("ft", 0.3048, LENGTH, Family::None),
    unit("yd", 0.9144, LENGTH, Family::None),
    unit("mi", 1609.344, LENGTH, Family::None),
    unit("li", 0.201168, LENGTH, Family::None),
    unit("rd", 5.02921, LENGTH, Family::None),
    unit("ch", 20.1168, LENGTH, Family::None),
    unit("mil", 0.0000254, LENGTH, Family::None),
    unit("m2", 1.0, AREA, Family::Squared),
    unit("sqin", 0.00064516, AREA, Family::None),
    unit("sqft", 0.09290304, AREA, Family::None),
    unit("sqyd", 0.83612736, AREA, Family::None),
    unit("sqmi", 2589988.110336, AREA, Family::None),
    unit("sqrd", 25.29295, AREA, Family::None),
    unit("sqch", 404.6873, AREA, Family::None),
    unit("sqmil", 6.4516e-10, AREA, Family::None),
    unit("acre", 4046.86, AREA, Family::None),
    unit("hectare", 10000.0, AREA, Family::None),
    unit("m3", 1.0, VOLUME, Family::Cubic),
    unit("L", 0.001, VOLUME, Family::Short),
    unit("l", 0.001, VOLUME, Family::Short),
    unit("litre", 0.001, VOLUME, Family::Long),
    unit("cuin", 0.000016387064, VOLUME, Family::None),
    unit("cuft", 0.028316846592, VOLUME, Family::None),
    unit("cuyd", 0.764554857984, VOLUME, Family::None),
    unit("teaspoon", 0.000005, VOLUME, Family::None),
    unit("tablespoon", 0.000015, VOLUME, Family::None),
    unit("drop", 5e-8, VOLUME, Family::None),
    unit("gtt", 5e-8, VOLUME, Family::None),
    unit("minim", 6.1611519921875e-8, VOLUME, Family::None),
    unit("fluiddram", 0.0000036966911953125, VOLUME, Family::None),
    unit("fluidounce", 0.0000295735295625, VOLUME, Family::None),
    unit("gill", 0.00011829411825, VOLUME, Family::None),
    unit("cc", 0.000001, VOLUME, Family::None),
    unit("cup", 0.0002365882365, VOLUME, Family::None),
    unit("pint", 0.000473176473, VOLUME, Family::None),
    unit("quart", 0.000946352946, VOLUME, Family::None),
    unit("gallon", 0.003785411784, VOLUME, Family::None),
    unit("beerbarrel", 0.117347765304, VOLUME, Family::None),
    unit("oilbarrel", 0.158987294928, VOLUME, Family::None),
    unit("hogshead", 0.238480942392, VOLUME, Family::None),
    unit("g", 0.001, MASS, Family::Short),
    unit("gram", 0.001, MASS, Family::Long),
    unit("ton", 907.18474, MASS, Family::Short),
    unit("t", 1000.0, MASS, Family::Short),
    unit("tonne", 1000.0, MASS, Family::Long),
    unit("grain", 0.00006479891, MASS, Family::None),
    unit("dram", 0.0017718451953125, MASS, Family::None),
    unit("ounce", 0.028349523125, MASS, Family::None),
    unit("poundmass", 0.45359237, MASS, Family::None),
    unit("hundredweight", 45.359237, MASS, Family::None),
    unit("stick", 0.115, MASS, Family::None),
    unit("stone", 6.35029318, MASS, Family::None),
    unit("gr", 0.00006479891, MASS, Family::None),
    unit("dr", 0.0017718451953125, MASS, Family::None),
    unit("oz", 0.028349523125, MASS, Family::None),
    unit("lbm", 0.45359237, MASS, Family::None),
    unit("cwt", 45.359237, MASS, Family::None),
    unit("s", 1.0, TIME, Family::Short),
    unit("min", 60.0, TIME, Family::None),
    unit("h", 3600.0, TIME, Family::None),
    unit("second", 1.0, TIME, Family::Long),
    unit("sec", 1.0, TIME, Family::Long),
    unit("minute", 60.0, TIME, Family::None),
    unit("hour", 3600.0, TIME, Family::None),
    unit("day", 86400.0, TIME, Family::None),
    unit("week", 604800.0, TIME, Family::None),
    unit("month", 2629800.0, TIME, Family::None),
    unit("year", 31557600.0, TIME, Family::None),
    unit("decade", 315576000.0, TIME, Family::None),
    unit("century", 3155760000.0, TIME, Family::None),
    unit("millennium", 31557600000.0, TIME, Family::None),
    unit("hertz", 1.0, FREQUENCY, Family::Long),
    unit("Hz", 1.0, FREQUENCY, Family::Short),
    unit("rad", 1.0, ANGLE, Family::Short),
    unit("radian", 1.0, ANGLE, Family::Long),
    unit("deg", 0.017453292519943295, ANGLE, Family::Short),
    unit("degree", 0.017453292519943295, ANGLE, Family::Long),
    unit("grad", 0.015707963267948967, ANGLE, Family::Short),
    unit("gradian", 0.015707963267948967, ANGLE, Family::Long),
    unit("cycle", std::f64::consts::TAU, ANGLE, Family::None),
    unit("arcsec", 0.00000484813681109536, ANGLE, Family::None),
    unit("arcmin", 0.0002908882086657216, ANGLE, Family::None),
    unit("A", 1.0, CURRENT, Family::Short),
    unit("ampere", 1.0, CURRENT, Family::Long),
    unit("K", 1.0, TEMPERATURE, Family::Short),
    scaled("degC", 1.0, TEMPERATURE, Family::Short, Scale::Celsius),
    scaled("degF", 0.5555555555555556, TEMPERATURE, Family::Short, Scale::Fahrenheit),
    unit("degR", 0.5555555555555556, TEMPERATURE, Family::Short),
    unit("kelvin", 1.0, TEMPERATURE, Family::Long),
    scaled("celsius", 1.0, TEMPERATURE, Family::Long, Scale::Celsius),
    scaled("fahrenheit", 0.5555555555555556, TEMPERATURE, Family::Long, Scale::Fahrenheit),
    unit("rankine", 0.5555555555555556, TEMPERATURE, Family::Long),
    unit("mol", 1.0, AMOUNT, Family::Short),
    unit("mole", 1.0, AMOUNT, Family::Long),
    unit("cd", 1.0, LUMINOUS_INTENSITY, Family::Short),
    unit("candela", 1.0, LUMINOUS_INTENSITY, Family::Long),
    unit("N", 1.0, FORCE, Family::Short),
    unit("newton", 1.0, FORCE, Family::Long),
    unit("dyn", 0.00001, FORCE, Family::Short),
    unit("dyne", 0.00001, FORCE, Family::Long),
    unit("lbf", 4.4482216152605, FORCE, Family::None),
    unit("poundforce", 4.4482216152605, FORCE, Family::None),
    unit("kip", 4448.2216, FORCE, Family::Long),
    unit("kilogramforce", 9.80665, FORCE, Family::None),
    unit("J", 1.0, ENERGY, Family::Short),
    unit("joule", 1.0, ENERGY, Family::Long),
    unit("erg", 1e-7, ENERGY, Family::ShortLong),
    unit("Wh", 3600.0, ENERGY, Family::Short),
    unit("BTU", 1055.05585262, ENERGY, Family::Btu),
    unit("eV", 1.602176565e-19, ENERGY, Family::Short),
    unit("electronvolt", 1.602176565e-19, ENERGY, Family::Long),
    unit("W", 1.0, POWER, Family::Short),
    unit("watt", 1.0, POWER, Family::Long),
    unit("hp", 745.6998715386, POWER, Family::None),
    unit("VA", 1.0, POWER, Family::Short),
    unit("Pa", 1.0, PRESSURE, Family::Short),
    unit("psi", 6894.75729276459, PRESSURE, Family::None),
    unit("atm", 101325.0, PRESSURE, Family::None),
    unit("bar", 100000.0, PRESSURE, Family::ShortLong),
    unit("torr", 133.322, PRESSURE, Family::None),
    unit("mmHg", 133.322, PRESSURE, Family::None),
    unit("mmH2O", 9.80665, PRESSURE, Family::None),
    unit("cmH2O", 98.0665, PRESSURE, Family::None),
    unit("coulomb", 1.0, CHARGE, Family::Long),
    unit("C", 1.0, CHARGE, Family::Short),
    unit("Ah", 3600.0, CHARGE, Family::Short),
    unit("farad", 1.0, CAPACITANCE, Family::Long),
    unit("F", 1.0, CAPACITANCE, Family::Short),
    unit("volt", 1.0, POTENTIAL, Family::Long),
    unit("V", 1.0, POTENTIAL, Family::Short),
    unit("ohm", 1.0, RESISTANCE, Family::ShortLong),
    unit("henry", 1.0, INDUCTANCE, Family::Long),
    unit("H", 1.0, INDUCTANCE, Family::Short),
    unit("siemens", 1.0, CONDUCTANCE, Family::Long),
    unit("S", 1.0, CONDUCTANCE, Family::Short),
    unit("weber", 1.0, MAGNETIC_FLUX, Family::Long),
    unit("Wb", 1.0, MAGNETIC_FLUX, Family::Short),
    unit("tesla", 1.0, FLUX_DENSITY, Family::Long),
    unit("T", 1.0, FLUX_DENSITY, Family::Short),
    unit("b", 1.0, INFORMATION, Family::BinaryShort),
    unit("bits", 1.0, INFORMATION, Family::BinaryLong),
    unit("B", 8.0, INFORMATION, Family::BinaryShort),
    unit("bytes", 8.0, INFORMATION, Family::BinaryLong),
    unit("meters", 1.0, LENGTH, Family::Long),
    unit("inches", 0.0254, LENGTH, Family::None),
    unit("feet", 0.3048, LENGTH, Family::None),
    unit("yards", 0.9144, LENGTH, Family::None),
    unit("miles", 1609.344, LENGTH, Family::None),
    unit("links", 0.201168, LENGTH, Family::None),
    unit("rods", 5.0292, LENGTH, Family::None),
    unit("chains", 20.1168, LENGTH, Family::None),
    unit("angstroms", 1e-10, LENGTH, Family::None),
    unit("lt", 0.001, VOLUME, Family::Short),
    unit("litres", 0.001, VOLUME, Family::Long),
    unit("liter", 0.001, VOLUME, Family::Long),
    unit("liters", 0.001, VOLUME, Family::Long),
    unit("teaspoons", 0.000005, VOLUME, Family::None),
    unit("tablespoons", 0.000015, VOLUME, Family::None),
    unit("minims", 6.1611519921875e-8, VOLUME, Family::None),
    unit("fldr", 0.0000036966911953125, VOLUME, Family::None),
    unit("fluiddrams", 0.0000036966911953125, VOLUME, Family::None),
    unit("floz", 0.0000295735295625, VOLUME, Family::None),
    unit("fluidounces", 0.0000295735295625, VOLUME, Family::None),
    unit("gi", 0.00011829411825, VOLUME, Family::None),
    unit("gills", 0.00011829411825, VOLUME, Family::None),
    unit("cp", 0.0002365882365, VOLUME, Family::None),
    unit("cups", 0.0002365882365, VOLUME, Family::None),
    unit("pt", 0.000473176473, VOLUME, Family::None),
    unit("pints", 0.000473176473, VOLUME, Family::None),
    unit("qt", 0.000946352946, VOLUME, Family::None),
    unit("quarts", 0.000946352946, VOLUME, Family::None),
    unit("gal", 0.003785411784, VOLUME, Family::None),
    unit("gallons", 0.003785411784, VOLUME, Family::None),
    unit("bbl", 0.117347765304, VOLUME, Family::None),
    unit("beerbarrels", 0.117347765304, VOLUME, Family::None),
    unit("obl", 0.158987294928, VOLUME, Family::None),
    unit("oilbarrels", 0.158987294928, VOLUME, Family::None),
    unit("hogsheads", 0.238480942392, VOLUME, Family::None),
    unit("gtts", 5e-8, VOLUME, Family::None),
    unit("grams", 0.001, MASS, Family::Long),
    unit("tons", 907.18474, MASS, Family::Short),
    unit("tonnes", 1000.0, MASS, Family::Long),
    unit("grains", 0.00006479891, MASS, Family::None),
    unit("drams", 0.0017718451953125, MASS, Family::None),
    unit("ounces", 0.028349523125, MASS, Family::None),
    unit("poundmasses", 0.45359237, MASS, Family::None),
    unit("hundredweights", 45.359237, MASS, Family::None),
    unit("sticks", 0.115, MASS, Family::None),
    unit("lb", 0.45359237, MASS, Family::None),
    unit("lbs", 0.45359237, MASS, Family::None),
    unit("kips", 4448.2216, FORCE, Family::Long),
    unit("kgf", 9.80665, FORCE, Family::None),
    unit("acres", 4046.86, AREA, Family::None),
    unit("hectares", 10000.0, AREA, Family::None),
    unit("sqfeet", 0.09290304, AREA, Family::None),
    unit("sqyard", 0.83612736, AREA, Family::None),
    unit("sqmile", 2589988.110336, AREA, Family::None),
    unit("sqmiles", 2589988.110336, AREA, Family::None),
    unit("mmhg", 133.322, PRESSURE, Family::None),
    unit("mmh2o", 9.80665, PRESSURE, Family::None),
    unit("cmh2o", 98.0665, PRESSURE, Family::None),
    unit("seconds", 1.0, TIME, Family::Long),
    unit("secs", 1.0, TIME, Family::Long),
    unit("minutes", 60.0, TIME, Family::None),
    unit("mins", 60.0, TIME, Family::None),
    unit("hours", 3600.0, TIME, Family::None),
    unit("hr", 3600.0, TIME, Family::None),
    unit("hrs", 3600.0, TIME, Family::None),
    unit("days", 86400.0, TIME, Family::None),
    unit("weeks", 604800.0, TIME, Family::None),
    unit("months", 2629800.0, TIME, Family::None),
    unit("years", 31557600.0, TIME, Family::None),
    unit("decades", 315576000.0, TIME, Family::None),
    unit("centuries", 3155760000.0, TIME, Family::None),
    unit("millennia", 31557600000.0, TIME, Family::None),
    unit("radians", 1.0, ANGLE, Family::Long),
    unit("degrees", 0.017453292519943295, ANGLE, Family::Long),
    unit("gradians", 0.015707963267948967, ANGLE, Family::Long),
    unit("cycles", std::f64::consts::TAU, ANGLE, Family::None),
    unit("arcsecond", 0.00000484813681109536, ANGLE, Family::None),
    unit("arcseconds", 0.00000484813681109536, ANGLE, Family::None),
    unit("arcminute", 0.0002908882086657216, ANGLE, Family::None),
    unit("arcminutes", 0.0002908882086657216, ANGLE, Family::None),
    unit("BTUs", 1055.05585262, ENERGY, Family::Btu),
    unit("watts", 1.0, POWER, Family::Long),
    unit("joules", 1.0, ENERGY, Family::Long),
    unit("amperes", 1.0, CURRENT, Family::Long),
    unit("amps", 1.0, CURRENT, Family::Long),
    unit("amp", 1.0, CURRENT, Family::Long),
    unit("coulombs", 1.0, CHARGE, Family::Long),
    unit("volts", 1.0, POTENTIAL, Family::Long),
    unit("ohms", 1.0, RESISTANCE, Family::ShortLong),
    unit("farads", 1.0, CAPACITANCE, Family::Long),
    unit("webers", 1.0, MAGNETIC_FLUX, Family::Long),
    unit("teslas", 1.0, FLUX_DENSITY, Family::Long),
    unit("electronvolts", 1.602176565e-19, ENERGY, Family::Long),
    unit("moles", 1.0, AMOUNT, Family::Long),
    unit("bit", 1.0, INFORMATION, Family::BinaryLong),
    unit("byte", 8.0, INFORMATION, Family::BinaryLong),
    unit("Å", 1e-10, LENGTH, Family::None),
];
