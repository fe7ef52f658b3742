-- The key with which the proxies of a database sign what they hand to clients and verify when it comes back.

CREATE TABLE pml.proxy_key (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  key bytea NOT NULL CHECK (octet_length(key) = 32)
);
COMMENT ON TABLE pml.proxy_key IS 'The secret that the proxies share';
COMMENT ON COLUMN pml.proxy_key.only_one IS 'There is one row';
COMMENT ON COLUMN pml.proxy_key.key IS 'Random bytes';

-- Generated on first use, so that a restored database or a replica keeps its key.
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
    -- Two UUIDs have 244 random bits; the hash spreads them over the key.
    INSERT INTO pml.proxy_key (key)
    VALUES (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')))
    ON CONFLICT DO NOTHING;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pml_internal.pml_proxy_key() IS 'The secret that the proxies of this database share (proxies only)';
