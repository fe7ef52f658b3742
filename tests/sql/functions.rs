//! The functions of the extension and their parameters, from the catalog, for tests that walk all of them.

use postgres::Client;

pub(crate) struct Function {
    /// With its schema, unless that is in the search path.
    pub name: String,
    pub parameters: Vec<Parameter>,
}

pub(crate) struct Parameter {
    pub name: String,
    /// The type, as SQL writes it.
    pub kind: String,
    pub has_default: bool,
}

/// All but trigger functions; `condition` is on `pg_proc p`.
pub(crate) fn functions(db: &mut Client, condition: &str) -> Vec<Function> {
    let query = format!(
        "SELECT p.oid::regproc::text, coalesce((p.proargnames)[1:p.pronargs], '{{}}'),
                ARRAY(SELECT format_type(a, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS t (a, n) ORDER BY n),
                p.pronargdefaults
         FROM pg_proc p WHERE p.proname LIKE 'pml\\_%' AND p.prorettype <> 'trigger'::regtype AND {condition}
         ORDER BY p.oid::regprocedure::text"
    );
    let rows = db.query(&query, &[]).unwrap();
    rows.iter()
        .map(|row| {
            let (names, kinds): (Vec<String>, Vec<String>) = (row.get(1), row.get(2));
            let required = kinds.len() - usize::try_from(row.get::<_, i16>(3)).unwrap();
            let parameters = names.into_iter().zip(kinds).enumerate();
            let parameters = parameters
                .map(|(at, (name, kind))| Parameter { name, kind, has_default: at >= required })
                .collect();
            Function { name: row.get(0), parameters }
        })
        .collect()
}
