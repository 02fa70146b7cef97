import com.intuit.karate.Runner;

/**
 * Runs each feature with a separate start of karate, one after the other, in one process.
 *
 * <p>FOLIO's JUnit classes start karate in this way, and mod-quick-marc relies on it: its set-up passes ids to the following
 * features in system properties, which karate reads at its start. The arguments are those of karate's own command, of which only
 * `-o DIR` and the features are used.
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
