//! Writes mnemonic text.

use crate::record::{Field, Record};

/// Appends a record and the blank line after it.
pub fn write(record: &Record, out: &mut String) {
    out.push_str("=LDR  ");
    out.push_str(record.leader.as_str());
    out.push('\n');
    for field in &record.fields {
        out.push('=');
        out.push_str(field.tag().as_str());
        out.push_str("  ");
        write_field(field, out);
        out.push('\n');
    }
    out.push('\n');
}

fn write_field(field: &Field, out: &mut String) {
    match field {
        Field::Control(field) => field.value.chars().for_each(|char| match char {
            ' ' => out.push('\\'),
            '\\' => out.push_str("{bsol}"),
            _ => write_char(char, out),
        }),
        Field::Data(field) => {
            field.indicators.iter().for_each(|indicator| write_indicator(*indicator, out));
            for subfield in &field.subfields {
                out.push('$');
                write_char(subfield.code, out);
                subfield.value.chars().for_each(|char| write_char(char, out));
            }
        }
    }
}

/// Writes an indicator; a backslash is a blank.
fn write_indicator(indicator: char, out: &mut String) {
    match indicator {
        ' ' => out.push('\\'),
        _ => write_char(indicator, out),
    }
}

fn write_char(char: char, out: &mut String) {
    match char {
        '$' => out.push_str("{dollar}"),
        '{' => out.push_str("{lcub}"),
        '}' => out.push_str("{rcub}"),
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}' => {
            out.push_str(&format!("{{u{:04X}}}", u32::from(char)));
        }
        _ => out.push(char),
    }
}
