-- A secret that all proxies of a database share: what they hand out to clients they know again when it comes back.

CREATE TABLE pml.proxy_key (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  key bytea NOT NULL CHECK (octet_length(key) = 32)
);
COMMENT ON TABLE pml.proxy_key IS 'The secret that the proxies share';
COMMENT ON COLUMN pml.proxy_key.only_one IS 'There is one row';
COMMENT ON COLUMN pml.proxy_key.key IS 'Random bytes';

-- Made when it is first asked for, so that a restore and a replica bring the one that there was.
CREATE FUNCTION pml_internal.pml_proxy_key() RETURNS bytea
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  shared bytea;
BEGIN
  LOOP
    SELECT k.key INTO shared FROM pml.proxy_key k;
    IF FOUND THEN
      RETURN shared;
    END IF;
    -- Two random UUIDs have 244 random bits; the hash makes them even.
    INSERT INTO pml.proxy_key (key)
    VALUES (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')))
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_proxy_key() IS 'The secret that the proxies of this database share (proxies only)';
