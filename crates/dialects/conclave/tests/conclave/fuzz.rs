//! Runs the fuzz targets of this crate on inputs mutated with a fixed seed; `just fuzz` runs them for longer.

#[path = "../../fuzz/fuzz_targets/topic_markup.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod topic_markup;

#[test]
fn topic_markup_survives() {
    topic_markup::survives([
        "# Title\n\n* [a](topic:b) and <b onclick=x>c</b>\n\n| a | b |\n|---|---|\n| `c` | ![d](e) |\n",
        "== Title ==\n''bold'' [[topic|label]] {{x}} http://example.org/ <script>alert(1)</script>\n",
        "<p class=\"a\">x <a href=\"javascript:alert(1)\">y</a> <img src=x onerror=alert(1)></p>",
    ]);
}
