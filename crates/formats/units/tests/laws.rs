//! Laws that hold for every text.

use proptest::prelude::*;

/// Pieces of which unit texts are made, and some that do not belong.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "m", "mm", "kg", "s", "eV", "degC", "degF", "Å", "A\u{30a}", "\u{212b}", "bits", "kilo", "Ki",
            "^", "^2", "^-0.5", "^1e9", "*", "/", "(", ")", " ", "\t", "1", "1e", "-", "+", ".", "%", "µ",
            "\u{0}", "é",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ]
}

fn unit_text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..12).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn no_text_panics(value in any::<f64>(), from in unit_text(), to in ".*") {
        pinakes_units::to_si(value, &from);
        pinakes_units::from_si(value, &from);
        pinakes_units::convert(value, &from, &to);
    }

    /// The SI text is itself a unit, of which one is one.
    #[test]
    fn si_units_are_their_own(text in unit_text()) {
        if let Some((_, si_text)) = pinakes_units::to_si(1.0, &text) {
            prop_assert_eq!(pinakes_units::to_si(1.0, &si_text), Some((1.0, si_text)));
        }
    }

    /// The printed unit means what the text means.
    #[test]
    fn printing_keeps_the_meaning(text in unit_text()) {
        if let Some(unit) = pinakes_units::unit(&text)
            && let Some(printed) = pinakes_units::unit(unit.text())
        {
            prop_assert!(unit.is_same_kind(&printed), "{} and {}", text, unit.text());
        }
    }

    #[test]
    fn there_and_back_is_the_same(
        value in -1e6_f64..1e6,
        unit in prop::sample::select(vec!["mm", "inch", "keV", "degC", "fahrenheit", "km/h", "g/cm^3", "GiB", "mbar"]),
    ) {
        let (value_si, _) = pinakes_units::to_si(value, unit).expect("a known unit");
        let back = pinakes_units::from_si(value_si, unit).expect("a known unit");
        prop_assert!((back - value).abs() <= 1e-9 * value.abs().max(1.0), "{} became {}", value, back);
    }
}
