//! The inputs that cost the parser or the compiler the most per byte, at the maximum size.

use pml_compile::MAX_CODE_BYTES;

/// A unit repeated up to the maximum size.
fn fill(unit: &str) -> String {
    unit.repeat(MAX_CODE_BYTES / unit.len())
}

/// Numbered units, as many as fit between `first` and `last`.
fn counted(first: &str, unit: impl Fn(usize) -> String, last: &str) -> String {
    let mut code = first.to_owned();
    for number in 0.. {
        let piece = unit(number);
        if code.len() + piece.len() + last.len() > MAX_CODE_BYTES {
            break;
        }
        code.push_str(&piece);
    }
    code + last
}

/// Half of the text from each of two units.
fn halves(one: &str, other: &str, between: &str) -> String {
    let half = |unit: &str| unit.repeat(MAX_CODE_BYTES / 2 / unit.len() - 20);
    format!("{}{between}{}", half(one), half(other))
}

pub(crate) fn inputs() -> Vec<(&'static str, String)> {
    let many_exits = |calls: &str| {
        let returns = "if(a)return mcp.a.b();".repeat(MAX_CODE_BYTES / 2 / 22);
        let room = MAX_CODE_BYTES - returns.len() - 20;
        format!("function f(){{{returns}}}{}", calls.repeat(room / calls.len()))
    };
    vec![
        ("open angles", fill(&format!("x={}a;", "a<".repeat(15)))),
        ("assertions", fill(&format!("x={}a;", "<T>".repeat(40)))),
        ("arrows", fill(&format!("x={}a;", "(a)=>".repeat(90)))),
        ("async arrows", fill(&format!("x={}a;", "async(a)=>".repeat(90)))),
        ("conditional arrows", fill(&format!("x={}a{};", "a?(a)=>(".repeat(40), "):c".repeat(40)))),
        ("conditional parentheses", fill(&format!("x={}a{};", "a?(a):".repeat(60), ""))),
        ("parentheses", fill(&format!("x={}a{};", "(".repeat(180), ")".repeat(180)))),
        ("objects", fill(&format!("x={}1{};", "{a:".repeat(90), "}".repeat(90)))),
        ("object patterns", fill(&format!("({}a{})=>1;", "{a:".repeat(90), "}".repeat(90)))),
        ("array patterns", fill(&format!("({}a{})=>1;", "[".repeat(120), "]".repeat(120)))),
        ("defaults", fill(&format!("({}a)=>1;", "a=".repeat(120)))),
        ("templates", fill(&format!("{}a{};", "`${".repeat(60), "}`".repeat(60)))),
        ("generic calls", fill(&format!("x={}a{};", "f<T>(".repeat(60), ")".repeat(60)))),
        ("comparisons before an error", "a<b\n".repeat(MAX_CODE_BYTES / 4 - 1) + "="),
        ("function types", fill(&format!("type A={}a;", "(a:b)=>".repeat(60)))),
        ("nested types", fill(&format!("type A={}a{};", "A<".repeat(15), ">".repeat(15)))),
        ("conditional types", fill(&format!("type A={}a;", "a extends b?c:".repeat(40)))),
        ("members", fill(&format!("x={};", "a.".repeat(190) + "a"))),
        (
            "names in deep blocks",
            format!("{}{}{}", "{".repeat(350), "a;".repeat(MAX_CODE_BYTES / 2 - 800), "}".repeat(350)),
        ),
        ("calls", fill("mcp.a.b();")),
        ("calls with arguments", fill("mcp.a.b({a:1,b:args.c});")),
        ("calls on one line in functions", fill("function f(mcp){mcp.a.b()}")),
        ("calls beside shadowed names", fill("{const mcp=1}mcp.a.b();")),
        ("calls in do-while", fill("do{mcp.a.b()}while(mcp.a.b());")),
        ("decisions", fill("if(a)mcp.a.b();")),
        ("nested decisions", fill(&format!("x={}a{};", "(".repeat(60), "?mcp.a.b():1)".repeat(60)))),
        ("nested arguments", fill(&format!("x={}a{};", "mcp.a.b(1+".repeat(30), ")".repeat(30)))),
        (
            "logical without calls behind cases",
            format!(
                "switch(x){{{}}}{}",
                "case 1:".repeat(MAX_CODE_BYTES / 16),
                "a&&b;".repeat(MAX_CODE_BYTES / 10)
            ),
        ),
        ("cases", format!("switch(x){{{}}}", "case 1:mcp.a.b();".repeat((MAX_CODE_BYTES - 16) / 17))),
        ("empty cases", format!("switch(x){{{}}}mcp.a.b()", "case 1:".repeat((MAX_CODE_BYTES - 32) / 7))),
        (
            "breaks",
            format!("for(;;){{{}}}mcp.a.b()", "if(a)break;mcp.a.b();".repeat((MAX_CODE_BYTES - 32) / 21)),
        ),
        ("labels", fill(&format!("{}x;", (0..150).map(|i| format!("a{i}:")).collect::<String>()))),
        ("a function with many exits", many_exits("f();")),
        ("a function with many exits, and calls", many_exits("f();mcp.a.b();")),
        ("functions that call the next", counted("", |i| format!("function f{i}(){{f{}()}}", i + 1), "f0()")),
        (
            "functions that call it twice",
            counted("function f0(){mcp.a.b()}", |i| format!("function f{}(){{a?f{i}():f{i}()}}", i + 1), ""),
        ),
        ("aliases", fill("{const m=mcp;m.a.b()};")),
        ("aliases of aliases", counted("const v0=mcp;", |i| format!("const v{}=v{i}.a;", i + 1), "")),
        (
            "values in values",
            counted("const v0={a:1};", |i| format!("const v{}={{a:v{i},b:v{i}}};", i + 1), "mcp.a.b(v9)"),
        ),
        (
            "values in arrays",
            counted("const v0=[1];", |i| format!("const v{}=[v{i}];", i + 1), "mcp.a.b(v9)"),
        ),
        (
            "values in templates",
            counted("const v0=`${x}`;", |i| format!("const v{}=`${{v{i}}}${{v{i}}}`;", i + 1), "mcp.a.b(v9)"),
        ),
        (
            "a long text used often",
            format!(
                "const s='{}';{}",
                "x".repeat(MAX_CODE_BYTES / 2),
                "mcp.a.b({s});".repeat(MAX_CODE_BYTES / 28)
            ),
        ),
        (
            "one value used often",
            format!("const v={{{}}};mcp.a.b({{{}}})", "a:1,".repeat(60), "...v,".repeat(MAX_CODE_BYTES / 6)),
        ),
        (
            "destructuring of a large object",
            format!("const{{{}}}={{{}}};", counted_names("", 9000), counted_names(":1", 9000)),
        ),
        ("enum members", counted("enum E{", |i| format!("a{i}=b,"), "}")),
        ("literals to lift", counted("", |i| format!("f({{url:'/{i}'}});"), "")),
        ("choices", counted("const{a}:{a:", |i| format!("'{i}'|"), "1}=args")),
        ("slashes behind braces", fill("{}/\"[\";")),
        ("divisions", fill("a/\"[\";")),
        ("returns", fill("if(a)return 1;if(a)return'x';")),
        ("comments", fill("/*a*/")),
        ("line comments", fill("//a\n")),
        ("parameters", counted("", |i| format!("args.a{i};"), "")),
        ("nested parameters", fill(&format!("args{};", ".a".repeat(150)))),
        ("binary on parameters", fill(&format!("x={}1;", "args.a+".repeat(120)))),
        ("classes", counted("", |i| format!("class A{i}{{a=1;m(){{}}}}"), "")),
        (
            "private members",
            fill(&format!(
                "{{class A{{{}}}}}",
                (0..100).map(|i| format!("#a{i};m{i}(){{this.#a{i}}}")).collect::<String>()
            )),
        ),
        ("one class of private members", counted("class A{", |i| format!("#a{i};"), "}")),
        ("abstract classes", counted("", |i| format!("abstract class A{i} implements B{{}}"), "")),
        ("type assertions", fill("x as T;")),
        ("generic arrows", fill("x=<T,>(a:T):T=>a;")),
        ("variables", counted("let ", |i| format!("a{i},"), "z")),
        ("regular expressions with groups", fill("/(?<a>b)[^c-d]+/u;")),
        ("caught variables", counted("try{}catch(a){", |_| "var a;".to_owned(), "}")),
        ("redeclared variables", counted("", |_| "var a=1;".to_owned(), "")),
        ("regular expressions", fill("x=/a/;")),
        ("strings with escapes", fill("x='\\u{61}';")),
        ("names with escapes", fill("\\u{61}\\u{61}\\u{61};")),
        ("one long name", "a".repeat(MAX_CODE_BYTES)),
        ("one name of escapes", fill("\\u{61}")),
        ("non-ASCII names", fill("é;")),
        ("exponents", fill(&format!("x={}a;", "a**".repeat(120)))),
        ("optional chains", fill(&format!("x=a{};", "?.a".repeat(120)))),
        ("optional calls", fill(&format!("x=a{};", "?.()".repeat(120)))),
        ("awaits", fill(&format!("x={}a;", "await ".repeat(120)))),
        ("new", fill(&format!("x={}a;", "new ".repeat(120)))),
        ("commas", format!("{}a", "a,".repeat(MAX_CODE_BYTES / 2 - 1))),
        ("comma in parentheses and arrow", fill("(a,b,c)=>(a,b,c);")),
        ("calls behind a large value", halves("mcp.a.b();", "x={a:1};", "")),
    ]
}

fn counted_names(last: &str, count: usize) -> String {
    (0..count).map(|i| format!("a{i}{last},")).collect()
}
