-- Code and versions as pure functions of text.

CREATE FUNCTION pml_internal.pml_code_hash(code text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_code_hash_wrapper';
COMMENT ON FUNCTION pml_internal.pml_code_hash(text) IS
  'BLAKE3 of the code''s tokens: the same for code that differs only in white space, comments and formatting';

CREATE FUNCTION pml_internal.pml_long_code_hash(code text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'pml_long_code_hash_wrapper';
COMMENT ON FUNCTION pml_internal.pml_long_code_hash(text) IS 'pml_code_hash extended to 1024 characters';

CREATE FUNCTION pml_internal.pml_text_hash(content text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_text_hash_wrapper';
COMMENT ON FUNCTION pml_internal.pml_text_hash(text) IS 'BLAKE3 of a text, in hex';

CREATE FUNCTION pml_internal.pml_version_tag(tag text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_version_tag_wrapper';
COMMENT ON FUNCTION pml_internal.pml_version_tag(text) IS 'A semantic version as it is stored (v1.2.0), or an error';

CREATE FUNCTION pml_internal.pml_version_key(tag text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pml_version_key_wrapper';
COMMENT ON FUNCTION pml_internal.pml_version_key(text) IS 'Text whose byte order is the precedence of semantic versions';

CREATE FUNCTION pml_internal.pml_diff(old text, new text, old_label text, new_label text) RETURNS text
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS 'MODULE_PATHNAME', 'pml_diff_wrapper';
COMMENT ON FUNCTION pml_internal.pml_diff(text, text, text, text) IS 'The unified diff between two texts';
