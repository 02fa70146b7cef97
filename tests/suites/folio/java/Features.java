import com.intuit.karate.Runner;

/**
 * Runs each feature by a start of karate of its own, one after the other, in one process.
 *
 * <p>FOLIO's JUnit classes start karate so, and mod-quick-marc relies on it: its set-up hands ids to the features that follow in
 * system properties, which karate reads when it starts. The arguments are those of karate's own command, of which `-o DIR` and
 * the features count.
 */
public class Features {
    public static void main(String[] arguments) {
        String reports = "reports";
        for (int at = 0; at < arguments.length; at++) {
            if (arguments[at].equals("-o")) {
                reports = arguments[++at];
            } else if (arguments[at].startsWith("-")) {
                at++;
            } else {
                Runner.path(arguments[at]).outputHtmlReport(false).backupReportDir(false)
                    .reportDir(reports + "/karate-reports").parallel(1);
            }
        }
    }
}
