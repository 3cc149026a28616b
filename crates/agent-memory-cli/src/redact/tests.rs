//! Tests of redaction: which values are replaced, and which texts stay.

use super::*;

#[test]
fn equal_values_get_the_same_mark() {
    let redactor = Redactor::new().unwrap();
    let shown = redactor.text("ada@engine.org, bob@engine.org; ada@engine.org");
    assert_eq!(
        shown,
        "[redacted:email 1], [redacted:email 2]; [redacted:email 1]"
    );
    let json = redactor.text(r#"{"to":"\u0062ob@engine.org","password":"hunter-2"}"#);
    assert_eq!(
        json,
        r#"{"to":"[redacted:email 2]","password":"[redacted:password 1]"}"#
    );
    let url = redactor.text("ftp://bob:hunter-2@engine.org and PASSWORD=hunter-2");
    assert_eq!(
        url,
        "ftp://bob:[redacted:password 1]@engine.org and PASSWORD=[redacted:password 1]"
    );
    assert_eq!(redactor.report(), "redacted: 2 email, 1 password");
}

#[test]
fn values_are_found_where_they_end_a_word_or_follow_an_escape() {
    for (text, shown) in [
        ("ssh root@81.2.69.142", "ssh root@[redacted:ip 1]"),
        ("<td>81.2.69.142</td>", "<td>[redacted:ip 1]</td>"),
        (
            r#"cut {"a":"\nada@engine.org"#,
            r#"cut {"a":"\n[redacted:email 1]"#,
        ),
        ("PASSWORD=hunter2;", "PASSWORD=[redacted:password 1];"),
        ("/home/jean-luc.", "/home/[redacted:user 1]."),
        (
            "SECRET_KEY=/a8B7c6D5/e4F3g2H1",
            "SECRET_KEY=[redacted:secret 1]",
        ),
        (r"C:\Users\nancy\x", r"C:\Users\[redacted:user 1]\x"),
        (r"C:\Users\emily\x", r"C:\Users\[redacted:user 1]\x"),
        ("[2a02:8071::b5c0:1d00]:443", "[[redacted:ip 1]]:443"),
    ] {
        assert_eq!(Redactor::new().unwrap().text(text), shown);
    }
}

#[test]
fn a_private_key_is_found_in_lines_of_a_list_or_of_code() {
    let dashes = "-".repeat(5);
    let lines = [
        format!("+{dashes}BEGIN PRIVATE KEY{dashes}"),
        format!("+{}", "q7Zr2Lw9".repeat(8)),
        format!("+{dashes}END PRIVATE KEY{dashes}"),
    ];
    let redactor = Redactor::new().unwrap();
    let json = serde_json::json!({"lines": lines, "of": {lines[0].as_str(): lines[2]}}).to_string();
    let shown: Value = serde_json::from_str(&redactor.text(&json)).unwrap();
    assert_eq!(
        shown["lines"],
        serde_json::json!(["+[redacted:private-key 1]"])
    );
    let code = format!(
        "key = \"{}\\n\" +\n  \"{}\"",
        lines[0],
        lines[1..].join("\\n\" +\n  \"")
    );
    assert_eq!(redactor.text(&code), "key = \"+[redacted:private-key 2]\"");
}

#[test]
fn a_value_is_replaced_in_every_form_and_text() {
    let redactor = Redactor::new().unwrap();
    let value = r#"Ky"ot\o9é#1"#;
    redactor.learn(&serde_json::json!({"query": {"password": value}}).to_string());
    redactor.learn("/home/hopper/src, from 81.2.69.142");
    let json = serde_json::json!({"x": value}).to_string();
    let twice = serde_json::json!([json]).to_string();
    for (text, shown) in [
        (
            format!("denied for {value}!"),
            "denied for [redacted:password 1]!",
        ),
        (format!("x{value}x"), "x[redacted:password 1]x"),
        (
            format!("cut: {json}"),
            r#"cut: {"x":"[redacted:password 1]"}"#,
        ),
        (
            json.replace('é', "\\u00e9"),
            r#"{"x":"[redacted:password 1]"}"#,
        ),
        (
            format!("cut: {}", json.replace('é', "\\u00e9")),
            r#"cut: {"x":"[redacted:password 1]"}"#,
        ),
        (
            format!("cut: {twice}"),
            r#"cut: ["{\"x\":\"[redacted:password 1]\"}"]"#,
        ),
        (
            "db:Ky%22ot%5Co9%C3%A9%231".to_owned(),
            "db:[redacted:password 1]",
        ),
        (
            "owner: hopper, grasshoppers".to_owned(),
            "owner: [redacted:user 1], grasshoppers",
        ),
    ] {
        assert_eq!(redactor.text(&text), shown);
    }
    assert_eq!(redactor.report(), "redacted: 1 password, 1 user");
}

#[test]
fn a_known_value_is_replaced_where_it_is_cut() {
    let redactor = Redactor::new().unwrap();
    let token = format!("gh{}", "p_Zk4WmXpLtVbNcJdHsGfYaUeIoPqA7SxDc2Rv");
    redactor.learn(&format!(
        "{token} DB_PASSWORD=Mayflower-1620 /home/bartholomew"
    ));
    for (text, shown) in [
        (
            "Error: mcp__a__b: gh_TOK…",
            "Error: mcp__a__b: [redacted:github-token 1]…",
        ),
        (
            "x=gh_TOK… and gh_TOK",
            "x=[redacted:github-token 1]… and [redacted:github-token 1]",
        ),
        (
            "…JdHsGfYaUeIoPqA7SxDc2Rv is",
            "…[redacted:github-token 1] is",
        ),
        ("… IoPqA7SxDc2Rv", "… [redacted:github-token 1]"),
        ("echo Mayflower-16…", "echo [redacted:password 1]…"),
        (
            "{\"a\":\"Mayflower-16…\"}",
            "{\"a\":\"[redacted:password 1]…\"}",
        ),
        ("owner: bartholom…", "owner: [redacted:user 1]…"),
        ("Mayflow…, gh_TOK next", "Mayflow…, gh_TOK next"),
        ("xbartholom…", "xbartholom…"),
    ] {
        let [text, shown] = [text, shown].map(|text| text.replace("gh_TOK", &token[..24]));
        let redacted = redactor.text(&text).into_owned();
        let numbers = |text: &str| text.replace([char::from(b'1'), '2'], "1");
        assert_eq!(numbers(&redacted), numbers(&shown), "{text}");
    }
}

#[test]
fn words_of_values_are_no_words() {
    let redactor = Redactor::new().unwrap();
    redactor.learn("smtp_pass: Zeppelin-77");
    let text = "Please set DB_PASSWORD=Mayflower1620! for the Zeppelin box.";
    assert_eq!(
        redactor
            .words(text)
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>(),
        ["Please", "set", "DB", "PASSWORD", "for", "the", "box"]
    );
}

#[test]
fn a_short_value_is_replaced_only_where_it_was_found() {
    let redactor = Redactor::new().unwrap();
    redactor.learn("curl -u ada:c4t http://a.org; /home/ada");
    assert_eq!(redactor.text("c4tch ada c4t"), "c4tch ada c4t");
}

#[test]
fn ids_that_are_hashes_come_from_the_secret() {
    let shown = |secret: &[u8], text: &str| {
        let redactor = Redactor::with_secret(secret).unwrap();
        redactor.learn(text);
        redactor.text(text).into_owned()
    };
    let hash = "ae0e69a2509bbc21";
    let text = format!(
        r#"{{"external_id":"h-{hash}-1","meta":{{"parentId":"h-{hash}-2"}},"text":"see jsonl-{hash}, sum_{hash}, item-{hash}{hash} and resp_{hash}","parts":[{{"id":"{hash}"}},"{hash}"]}}"#
    );
    let one = shown(b"one", &text);
    assert!(!one.contains(hash), "{one}");
    let other = one.split("h-").nth(1).unwrap().get(..16).unwrap();
    assert!(
        one.contains(&format!(r#""h-{other}-2""#)) && one.contains(&format!("sum_{other}")),
        "{one}"
    );
    assert!(
        one.contains(&format!(r#"[{{"id":"{other}"}},"{other}"]"#)),
        "{one}"
    );
    assert_eq!(shown(b"one", &text), one);
    assert_ne!(shown(b"two", &text), one);
    assert_eq!(shown(b"two", &text).len(), text.len());
    let commit =
        "9fceb02d0ae598e95dc970b74767f19372d61af8 at step-9fceb02d0ae598e95dc970b74767f19372d61af8";
    assert_eq!(shown(b"one", commit), commit);
}

#[test]
fn a_text_forges_no_mark() {
    for (text, shown) in [
        (
            "[redacted:email 1] ada@engine.org",
            "[was redacted:email 1] [redacted:email 1]",
        ),
        (
            "password=[redacted:S3cretPw1",
            "password=[redacted:password 1]",
        ),
        (
            r#"password="[redacted:S3cretPw1""#,
            r#"password="[redacted:password 1]""#,
        ),
        (
            r#"{"password":"[redacted:S3cretPw1"}"#,
            r#"{"password":"[redacted:password 1]"}"#,
        ),
        (
            "password=S3cretPw1[redacted:x",
            "password=[redacted:password 1]",
        ),
        (
            "{\"a\":\"\\u005bredacted:ip 1]\"}",
            r#"{"a":"[was redacted:ip 1]"}"#,
        ),
        (
            "password=\u{fde0}\u{fdd1}S3cretPw1",
            "password=[redacted:password 1]",
        ),
        (
            "{\"password\":\"\\ufde1\\ufdd1S3cretPw1\"}",
            r#"{"password":"[redacted:password 1]"}"#,
        ),
    ] {
        assert_eq!(Redactor::new().unwrap().text(text), shown, "{text}");
    }
}

/// Asserts that each value is replaced in its text, and in another one.
fn assert_all_found(cases: &[(&str, &str)]) {
    for (text, value) in cases.iter().copied() {
        let redactor = Redactor::new().unwrap();
        let text = text.replace("VALUE", value);
        redactor.learn(&text);
        let shown = redactor.text(&text);
        assert!(
            !shown.contains(value) && shown.contains(MARK),
            "{text:?} is {shown:?}"
        );
        let again = format!("failed: {value}.");
        assert!(!redactor.text(&again).contains(value), "{again}");
    }
}

#[test]
fn values_without_quotes_are_found_in_settings() {
    assert_all_found(&[
        ("password=VALUE", "Summer2024!"),
        ("password: VALUE", "Summer2024!"),
        ("password = VALUE", "hunter2x"),
        ("passwd=VALUE", "Tr0ub4dor&3"),
        ("passwd: VALUE", "sharpie2024"),
        ("url?password=VALUE&next=1", "hunter2x"),
        ("spring.datasource.password=VALUE\nx=1", "kitten77"),
        ("host=db user=app password=VALUE dbname=shop", "kitten77"),
        ("Server=db;User Id=app;Password=VALUE;", "Kitten77"),
        ("smtp_pass: VALUE # for mails", "kitten77"),
        ("pw: VALUE", "Mayflower1620!"),
        ("password => VALUE", "Mayflower1620!"),
        ("password\tVALUE", "Mayflower1620!"),
        ("ENV DB_PASSWORD VALUE", "Mayflower1620!"),
        (r#""pass\u0077ord":"VALUE""#, "Mayflower1620!"),
        (r#"{"db_p\u0061sswd":"VALUE"}"#, "Mayflower1620!"),
        ("ALTER USER ada WITH PASSWORD 'VALUE'", "Mayflower1620!"),
        ("create user ada identified by 'VALUE'", "Mayflower1620!"),
        ("password=\"VALUE\"", "mnbvcxyqwe"),
        (r#"{"password":"VALUE"}"#, "mnbvcxyqwe"),
        ("Authorization: Bearer VALUE", "kLm94PQrs7"),
        ("Authorization: Bearer VALUE", "Mayflower1620!"),
        (
            "curl -H 'Authorization: token VALUE' https://a.org",
            "Mayflower1620!",
        ),
        ("Bearer VALUE", "Mayflower1620!"),
        (r#"{"authorization":"Bearer VALUE"}"#, "Mayflower1620!"),
        ("HF_TOKEN=VALUE", "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"),
        ("see VALUE", "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"),
        ("see VALUE", "sq0atp-Zk4WmXpLtVbNcJdHsGfYaU"),
        ("see VALUE", "EAACZk4WmXpLtVbNcJdHsGfYaUeIoPqA7SxDc2Rv"),
        ("xVALUE", "lin_api_Zk4WmXpLtVbNcJdHsGfYaUeIoPqA7SxDc2Rvmn93"),
        ("pass=VALUE", "kitten77"),
        ("client_secret: VALUE", "kqzvwxjhbmplrtsd7f"),
        ("DATADOG_KEY=VALUE", "3f9c0b7d5e8a1c2f4b6d8e0a9c7f5b3d"),
        ("datadogKey: VALUE", "3f9c0b7d5e8a1c2f4b6d8e0a9c7f5b3d"),
        ("<password>VALUE</password>", "kitten77"),
        ("<db.password> VALUE </db.password>", "kitten77"),
        ("- name: DB_PASSWORD\n  value: VALUE\n", "kitten77"),
        (r#"<add key="DbPassword" value="VALUE"/>"#, "kitten77"),
        (r#"[{"name":"DB_PASSWORD","value":"VALUE"}]"#, "kitten77"),
        (
            "\u{1b}[32mpassword\u{1b}[0m: \u{1b}[33mVALUE\u{1b}[0m",
            "kitten77",
        ),
        (r#"\x1b[33mpassword="\x1b[1mVALUE\x1b[0m""#, "kitten77"),
    ]);
}

#[test]
fn values_are_found_in_commands_and_requests() {
    assert_all_found(&[
        ("curl -s -u ada:VALUE https://a.org", "kitten"),
        ("curl --user 'ada:VALUE' https://a.org", "kitten"),
        ("mysql -u root -pVALUE shop", "kitten"),
        ("mysqldump -p'VALUE' shop", "kitten"),
        ("sshpass -p VALUE ssh host", "kitten"),
        ("machine a.org login ada password VALUE", "kitten"),
        ("machine a.org\n  login ada\n  password VALUE\n", "kitten"),
        ("Cookie: theme=dark; sid=VALUE; lang=en", "k9x2m4q7w1"),
        (
            r#"{"headers":{"Cookie":"sid=VALUE; lang=en"}}"#,
            "k9x2m4q7w1",
        ),
        (
            r#"{"headers":{"Authorization":"Basic VALUE"}}"#,
            "YWRhOmtpdHRlbjc3",
        ),
        (
            r#"{"auths":{"https://index.docker.io/v1/":{"auth":"VALUE"}}}"#,
            "YWRhOmtpdHRlbjc3",
        ),
        (r#"cut {"auth": "VALUE", "#, "YWRhOmtpdHRlbjc3"),
        ("//registry.npmjs.org/:_auth=VALUE", "YWRhOmtpdHRlbjc3"),
        (
            "GET https://a.org/x?X-Amz-Date=20260101T000000Z&X-Amz-Signature=VALUE",
            "3f9c0b7d5e8a1c2f4b6d8e0a9c7f5b3d",
        ),
        (
            "https://a.org/x?sv=2022-11-02&sig=VALUE&se=2027",
            "k9X2m%2BQ7w1Zr2Lw9Xc4Vb8Nm1Kj6Hg3Fd5%3D",
        ),
    ]);
}

#[test]
fn a_password_in_base64_is_known_in_other_texts() {
    let redactor = Redactor::new().unwrap();
    redactor.learn(r#"{"auth":"YWRhOmtpdHRlbjc3"}"#);
    assert_eq!(
        redactor.text("ada's kitten77"),
        "ada's [redacted:password 1]"
    );
}

#[test]
fn a_key_that_is_cut_off_is_replaced_to_its_last_line() {
    let line = "q7Zr2Lw9".repeat(8);
    let key = format!("{0}BEGIN RSA PRIVATE KEY{0}\n{line}\n", "-".repeat(5));
    for (text, shown) in [
        (format!("{key}Xc4Vb8Nm"), "[redacted:private-key 1]"),
        (format!("{key}XcVbNm"), "[redacted:private-key 1]"),
        (
            format!("{key}{line}\nXc4Vb8N=\n\ndone"),
            "[redacted:private-key 1]\n\ndone",
        ),
        (
            format!("{key}done, all"),
            "[redacted:private-key 1]\ndone, all",
        ),
        (
            format!("and then {line}"),
            "and then [redacted:private-key 1]",
        ),
    ] {
        let redactor = Redactor::new().unwrap();
        redactor.learn(&key);
        let shown_text = redactor.text(&text);
        assert_eq!(shown_text.replace(" 2]", " 1]"), shown);
    }
}

/// Lines of code, settings and reports without a secret.
#[test]
fn code_that_speaks_of_passwords_stays() {
    let redactor = Redactor::new().unwrap();
    for text in [
        "password = get_password2()",
        "password = config.password2",
        "self.password = password1",
        "let password = args2.next()?;",
        "password: user1.password,",
        "password: String2 = x",
        "const password = req.body.newPassword2;",
        "if (password !== password2) {",
        "assert password == expected22",
        "connect(user=user1, password=password1)",
        "password = hashlib.sha256(salt).hexdigest()",
        "password_hash: argon2id, password: argon2id",
        "password = base64decode2(raw)",
        "password: z.string().min(12)",
        "password = rows[12]",
        "char passwd[64]; passwd = buf64 + 12;",
        "PASS: tests/a2.rs, --- PASS: TestParse2 (0.01s)",
        "authorization: required, Authorization: Bearer token, Authorization: Bearer $TOKEN, OAuth Bearer RFC6750",
        "the bearer of this letter, Authorization: Bearer <token>, authorization: the token is needed",
        "pw = sync_playwright2; pw: page.width2, import playwright as pw",
        "password => hash2(password), password => value2, password\tusername2\temail",
        "{\"password\": \"required\", \"type\": \"password\", \"label\": \"newPassword\"}",
        "errors.password = \"incorrect\"; identified by 'column_name', password 'required'",
        "ENV PATH /usr/local/bin2, desk-9fceb02d0ae598e95dc970b74767f19372d61af8",
        "hf_ModelForSequenceClassificationWithHead",
        "pass: 12 of 14, first pass: 3ms",
        "primary_key=users_2024_01_id_77",
        "cache_key: linux-x64-node20-9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sort_key = name_2_then_date_3_then_id",
        "partition-key: 2026-11-28T10:00:00Z",
        "\"integrity\": \"sha512-q7Zr2Lw9Xc4Vb8Nm1Kj6Hg3Fd5Sa0PoIuYtReW9q==\"",
        "mysql -P 3306 -u root -p shop",
        "curl -u $USER:$TOKEN https://a.org; curl -u user:password a.org",
        "docker run -u 1000:1000 -p 8080:80 app2",
        "Set-Cookie: theme=dark; Path=/; Max-Age=31536000; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
        "cookie = jar.get(name=session_name)",
        "{\"auth\": \"basic\", \"key\": \"value22\", \"id\": \"a1\"}",
        "login as root, password is asked; machine learning, login page, password reset",
        "https://a.org/list?page=2&sort=created_at&key=name",
        "arr[0m 1], \u{1b}[32mok\u{1b}[0m 12 passed",
    ] {
        redactor.learn(text);
        assert_eq!(redactor.text(text), text);
    }
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let redactor = Redactor::new().unwrap();
    for text in [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "git clone git@github.com:rust-lang/regex.git",
        "user@example.com, noreply@corp.net, icon@2x.png, react@18.2.0",
        "127.0.0.1:8080 0.0.0.0 ::1 192.0.2.7 2001:db8::1 10.0.0.0/8",
        "version 4.18.2.1, **V8**: update to 4.4.63.30, v1.2.3.5, chrome/120.0.6099.71",
        "12:34:56, std::fmt::Debug, aa:bb:cc:dd:ee:ff, ffff:ffff:ffff:ffff::",
        "let token = self.next_token2(); password = get_password1(); secret: process.env.SECRET_1",
        "password: string, token?: string; \"max_tokens\": 4096, password=$PASSWORD1",
        "https://site.org/home/page https://user:password@host/ /home/user/x src/home/index.ts",
        "the bearer of this-is-a-long-word, API key: your_api_key_0123456789",
        "token_secret=/run/secrets/db_token_12 pwd = $WORK_DIR2 PWD=/home/user/work1 csrf token: 123e4567-e89b-12d3-a456-426614174000",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}

/// Texts of pieces of secrets, of their surroundings, and of JSON.
#[test]
fn redaction_is_idempotent_and_keeps_json() {
    let random = "q7Zr2Lw9Xc4Vb8Nm1Kj6Hg3Fd5Sa0PoIuYtReW9q";
    let redactor = Redactor::new().unwrap();
    let token = format!("gh{}{random}", "p_");
    let pieces = [
        token.as_str(),
        random,
        "ada@engine.org",
        "81.2.69.142",
        "/home/ada",
        "\"",
        "\\",
        "\\n",
        "\n",
        " ",
        ":",
        "=",
        "{",
        "}",
        "[",
        "]",
        ",",
        "password",
        "token",
        "\"password\":\"",
        "://ada:",
        "@",
        "Bearer ",
        "\\u00e9",
        "é",
        "[redacted:email 1]",
        "[redacted:",
        "1]",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "2a02:8071:b5c0::1d00:4c1e",
        "C:\\Users\\",
        "-Users-",
        "api_key",
        "<",
        "--",
    ];
    // A second pass finds nothing, and says that the marks are those of the text.
    let earlier = |text: &str| text.replace(MARK, EARLIER);
    let mut random = fastrand::Rng::with_seed(7);
    let mut texts = |length: usize| -> String {
        (0..random.usize(..length))
            .map(|_| pieces[random.usize(..pieces.len())])
            .collect()
    };
    for _ in 0..3_000 {
        let text = texts(12);
        let once = redactor.text(&text);
        assert_eq!(redactor.text(&once), earlier(&once), "{text:?}");
        let json = serde_json::json!({texts(3): texts(6), "password": [texts(4)], "arguments":
            serde_json::json!({"a": texts(6)}).to_string(), "half": texts(6)})
        .to_string()
        .replace("é", "\\ud800");
        let once = redactor.text(&json);
        let value: Value = serde_json::from_str(&once.replace("\\ud800", "?")).unwrap();
        serde_json::from_str::<Value>(value["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(redactor.text(&once), earlier(&once), "{json}");
    }
}
