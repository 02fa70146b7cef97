//! Words, names and sentences for generated records.

use super::random::Random;

/// Nouns and adjectives of research catalogues, some beyond ASCII so that encodings are exercised.
pub const WORDS: [&str; 64] = [
    "absorption",
    "alloy",
    "annealing",
    "anode",
    "archive",
    "atlas",
    "beam",
    "calibration",
    "cathode",
    "cell",
    "ceramic",
    "chopper",
    "cobalt",
    "collimator",
    "crystal",
    "detector",
    "diffraction",
    "diffusion",
    "dose",
    "electron",
    "emission",
    "épitaxie",
    "exposure",
    "ferrite",
    "field",
    "film",
    "fluorescence",
    "furnace",
    "gallium",
    "grain",
    "grating",
    "Größe",
    "helium",
    "hysteresis",
    "imaging",
    "interface",
    "isotope",
    "lattice",
    "layer",
    "lithium",
    "magnet",
    "membrane",
    "mirror",
    "moisture",
    "monochromator",
    "naïve",
    "neutron",
    "nickel",
    "phase",
    "photon",
    "polymer",
    "powder",
    "quartz",
    "reflectometry",
    "residual",
    "sample",
    "scattering",
    "spectrum",
    "strain",
    "temperature",
    "tomography",
    "vacuum",
    "viscosity",
    "wafer",
];

/// Family names of generated people.
pub const FAMILY_NAMES: [&str; 24] = [
    "Abe",
    "Andersson",
    "Bauer",
    "Čapek",
    "Dubois",
    "Eriksen",
    "Fischer",
    "García",
    "Haddad",
    "Ivanova",
    "Jensen",
    "Kowalska",
    "Lindqvist",
    "Müller",
    "Nguyen",
    "Okafor",
    "Pereira",
    "Quinn",
    "Rossi",
    "Sato",
    "Şahin",
    "Tanaka",
    "Varga",
    "Zhang",
];

/// Given names of generated people.
pub const GIVEN_NAMES: [&str; 16] = [
    "Ada", "Boris", "Chloé", "Deniz", "Elif", "Farid", "Greta", "Hana", "Ines", "Jonas", "Kofi", "Lena",
    "Mateo", "Noor", "Olga", "Pavel",
];

/// Returns a line of `n_words` words, the first with a capital.
pub fn sentence(random: &mut Random, n_words: usize) -> String {
    let mut text = String::new();
    for index in 0..n_words {
        let word = random.pick(&WORDS);
        if index > 0 {
            text.push(' ');
            text.push_str(word);
            continue;
        }
        let mut letters = word.chars();
        text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        text.push_str(letters.as_str());
    }
    text
}

/// `Given Family`.
pub fn person(random: &mut Random) -> String {
    format!("{} {}", random.pick(&GIVEN_NAMES), random.pick(&FAMILY_NAMES))
}
