-- How often a capability was used.

-- Without settings, so that it is inlined.
CREATE FUNCTION pml_internal.pml_used(fqdn text, own_uses bigint, own_successes bigint, own_latency_ms bigint)
  RETURNS TABLE (uses bigint, successes bigint, latency_ms bigint)
  LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
  SELECT (pml_used.own_uses + coalesce(sum(u.uses), 0))::bigint,
         (pml_used.own_successes + coalesce(sum(u.successes), 0))::bigint,
         (pml_used.own_latency_ms + coalesce(sum(u.latency_ms), 0))::bigint
  FROM pml.capability_usage u WHERE u.capability_fqdn = pml_used.fqdn;
END;
COMMENT ON FUNCTION pml_internal.pml_used(text, bigint, bigint, bigint) IS
  'How often a capability was used: what its record says, and what was counted since that was written';

CREATE FUNCTION pml_internal.pml_success_rate(success_count bigint, usage_count bigint) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN pg_catalog.round(success_count::numeric / NULLIF(usage_count, 0), 4);
COMMENT ON FUNCTION pml_internal.pml_success_rate(bigint, bigint) IS 'The share of successes; NULL for what was never used';
