use super::*;

fn replaces(earlier: &str, later: &str) -> bool {
    let said = vec![Said::of(earlier), Said::of(later)];
    !Changes::new(said, "").of(0).is_empty()
}

#[test]
fn a_later_value_of_the_same_subject_replaces_an_earlier_one() {
    for (earlier, later) in [
        (
            "Start table names with 't_'.",
            "From now on, begin table names with 'tbl_'.",
        ),
        (
            "End the names of jobs with '_job'.",
            "For names of jobs, I'd like you to end them with 'Job'.",
        ),
        (
            "The staging server listens on port 8080.",
            "Correction: the staging server listens on port 9090.",
        ),
        (
            "Use `tabs` for indentation.",
            "Don't use `tabs` for indentation any more.",
        ),
        (
            "Use snake_case for table names.",
            "When naming tables, always use CamelCase.",
        ),
        (
            "When filling tables, start the table names with 't_'.",
            "Start table names with 'tbl_'.",
        ),
        (
            "Start table names with 't_' and end them with '_v'.",
            "End table names with '_w'.",
        ),
        (
            "変数名は「x_」で始めてください。",
            "今後、変数名は「y_」で始めてください。",
        ),
        (
            "변수 이름은 'x_'로 시작하세요.",
            "변수 이름은 'y_'로 시작해 주세요.",
        ),
        ("变量名用'x_'开头。", "变量名改成用'y_'开头。"),
    ] {
        assert!(replaces(earlier, later), "{earlier} / {later}");
    }
}

#[test]
fn another_subject_and_one_of_several_replace_nothing() {
    for (earlier, later) in [
        (
            "Start table names with 't_'.",
            "Start column names with 'c_'.",
        ),
        ("Start table names with 't_'.", "End table names with '_t'."),
        (
            "End table names with '_t'.",
            "End table column names with '_c'.",
        ),
        (
            "Start table names with 't_'.",
            "When naming columns, start the names with 'c_'.",
        ),
        (
            "Add the 'audit' trait to all tables.",
            "Add the 'owner' trait to all tables.",
        ),
        ("Import the 'json' module.", "Import the 'csv' module."),
        (
            "Please rename the function parse_1 in module 1.",
            "Please rename the function parse_2 in module 2.",
        ),
        (
            "Rule 3: never change module number 3 alone.",
            "Rule 4: never change module number 4 alone.",
        ),
        ("The test of parse_a fails.", "The test of parse_b fails."),
        (
            "関数名は「f_」で始めてください。",
            "変数名は「v_」で始めてください。",
        ),
    ] {
        assert!(!replaces(earlier, later), "{earlier} / {later}");
    }
}

#[test]
fn what_is_so_now_replaces_what_was_so() {
    for (earlier, later) in [
        // Numbers, amounts, dates.
        (
            "The mail relay listens on port 2525.",
            "Sorry, the mail relay listens on port 2526, not 2525.",
        ),
        (
            "The lease lasts 30 minutes.",
            "The lease now lasts forty-five minutes.",
        ),
        (
            "Workshop costs must stay under €900.",
            "New limit for workshop costs: keep them below six hundred euros.",
        ),
        (
            "The freeze is planned for 2031-03-04.",
            "The freeze date moved to April 11.",
        ),
        ("The retro is on Monday.", "The retro has moved to Tuesday."),
        (
            "The service `orders` runs version 1.4.2.",
            "The service `orders` runs version 1.5.0 now.",
        ),
        // Names, and other words that are values only by their place.
        (
            "The default branch is master.",
            "The default branch is now main.",
        ),
        (
            "Show all times in UTC.",
            "From now on, show all times in Eastern time.",
        ),
        (
            "Write the changelog in German.",
            "From now on, write the changelog in French.",
        ),
        (
            "Use tabs for indentation.",
            "Use spaces for indentation instead.",
        ),
        // Names of things, by other words.
        (
            "The tool is called KITE-12.",
            "We are calling the tool HERON-34 now.",
        ),
        (
            "Work goes on in branch topic/kite-1.",
            "We switched work to branch topic/heron-2; tests come next.",
        ),
        (
            "Never reveal the door code 4411-a.",
            "Never reveal the new door code 5522-b; the old one is void.",
        ),
        (
            "For job names, I'd like you to start using the prefix 'j_' instead of what I told you before.",
            "From now on, when you're naming jobs, start the names with 'k_'.",
        ),
        // Letter cases, and how firmly a rule is wished.
        (
            "Use snake_case for job names.",
            "I'd like to stress the use of all uppercase for job names.",
        ),
        (
            "In Lua, we always use snake_case for job names.",
            "From now on, use CamelCase for job names.",
        ),
        (
            "As for the current rules, begin job names with 'j_'.",
            "Begin job names with 'job_'.",
        ),
        (
            "Whenever you're naming jobs, count them and start the name with 'j_'.",
            "From now on, start job names with 'k_'.",
        ),
        (
            "End all table column names with '_c'.",
            "I prefer table column names to end with '_col'.",
        ),
        (
            "Also, when naming the tables themselves, I want you to start the names with 't_'.",
            "Going forward, I'd like you to start table names with 'tab_'.",
        ),
        // The subject by another word, and the form of codes and paths.
        (
            "End all names of table columns with '_c'.",
            "When naming table columns, end the field name with '_col'.",
        ),
        (
            "The gate alarm code is qrs-41 and nobody may write it down.",
            "Alarm code change: never say tuv-52, the former code no longer opens the door.",
        ),
        (
            "Use imperial units in the summaries.",
            "Please stick to metric units in the summaries.",
        ),
        (
            "The launch in Lima starts on June 3.",
            "The launch in Lima is cancelled.",
        ),
        (
            "Der Testserver läuft auf Port 8080.",
            "Korrektur: Der Testserver läuft auf Port 9090.",
        ),
        (
            "Schreibe alle Berichte auf Deutsch.",
            "Ab sofort schreibst du alle Berichte auf Englisch.",
        ),
        (
            "試験のポートは8080です。",
            "試験のポートは8080ではなく9090です。",
        ),
        (
            "報告は日本語で書いてください。",
            "今後は報告を英語で書いてください。",
        ),
        (
            "시험 서버의 포트는 8080입니다.",
            "정정: 시험 서버의 포트는 9090입니다.",
        ),
    ] {
        assert!(replaces(earlier, later), "{earlier} / {later}");
    }
}

#[test]
fn what_is_so_of_something_else_replaces_nothing() {
    for (earlier, later) in [
        (
            "The staging relay listens on port 25.",
            "The production relay listens on port 26 now.",
        ),
        (
            "The store region is eu-3.",
            "The backup store region is now us-4.",
        ),
        (
            "The timeout for reads is 30 seconds.",
            "The timeout for writes is now 60 seconds.",
        ),
        (
            "The service `orders` runs version 1.4.2.",
            "The service `bills` runs version 2.0.1 now.",
        ),
        (
            "The meeting with Rhea is on Monday.",
            "The meeting with Juno is now on Tuesday.",
        ),
        (
            "Dana Fox is the release approver.",
            "Lee Chan is now the design reviewer.",
        ),
        (
            "Write the changelog in German.",
            "From now on, write the tests in French.",
        ),
        (
            "The staging API key is qrs-41.",
            "The production API key was replaced: it is tuv-52.",
        ),
        (
            "The API key check reads qrs-41.",
            "The API key store was replaced: it reads tuv-52.",
        ),
        (
            "End all table names with '_t'.",
            "When naming table columns, make sure to end the names with '_c'.",
        ),
        (
            "When naming table columns, make sure to end the names with '_c'.",
            "From now on, end all table names with '_t'.",
        ),
        ("The login page is slow.", "The login page is ugly."),
        (
            "The launch in Lima starts on June 3.",
            "The launch in Oslo is cancelled.",
        ),
        (
            "We cache sessions in Redis.",
            "We now keep jobs in Postgres.",
        ),
        (
            "When naming jobs, start the name with 'j_'.",
            "When naming jobs, end the name with '_j'.",
        ),
        (
            "Schreibe alle Berichte auf Deutsch.",
            "Ab sofort schreibst du alle Kommentare auf Englisch.",
        ),
        (
            "報告は日本語で書いてください。",
            "今後は試験を英語で書いてください。",
        ),
        (
            "본점 서버의 포트는 443입니다.",
            "정정: 시험 서버의 포트는 9090입니다.",
        ),
    ] {
        assert!(!replaces(earlier, later), "{earlier} / {later}");
    }
}

#[test]
fn a_change_says_why() {
    let why = |earlier: &str, later: &str| {
        let said = vec![Said::of(earlier), Said::of(later)];
        let changes = Changes::new(said, "");
        changes.of(0).first().map(|change| change.why.clone())
    };
    let value = |value: &str| {
        Some(Why::Value {
            value: Some(value.to_owned()),
            in_part: false,
        })
    };
    assert_eq!(
        why(
            "The server listens on 8080.",
            "The server `api` now listens on 9090."
        ),
        value("9090")
    );
    assert_eq!(
        why(
            "The launch in Lima starts on June 3.",
            "The launch in Lima is cancelled."
        ),
        Some(Why::Dropped)
    );
    assert_eq!(
        why(
            "The default branch is master.",
            "The default branch is now main."
        ),
        value("main")
    );
    assert_eq!(
        why(
            "We run the importer on our own server.",
            "We do not run the importer on our own server."
        ),
        Some(Why::Dropped)
    );
    assert_eq!(
        why("The login page is slow.", "The login page is ugly."),
        None
    );
}
