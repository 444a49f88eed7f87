-- Nine tables and five kinds of transactions after TPC-C's: derived from TPC-C, and none of it.
-- psql variables: warehouses, items, customers (a district), fillfactor.
CREATE TABLE warehouse (w_id int PRIMARY KEY, w_ytd numeric(12,2) NOT NULL, w_name text NOT NULL)
    WITH (fillfactor = 20);
CREATE TABLE district (w_id int, d_id int, d_next_o_id int NOT NULL, d_ytd numeric(12,2) NOT NULL,
    PRIMARY KEY (w_id, d_id)) WITH (fillfactor = 20);
CREATE TABLE customer (w_id int, d_id int, c_id int, c_balance numeric(12,2) NOT NULL,
    c_payments int NOT NULL, c_data text NOT NULL, PRIMARY KEY (w_id, d_id, c_id))
    WITH (fillfactor = :fillfactor);
CREATE TABLE history (w_id int, d_id int, c_id int, h_amount numeric(6,2), h_time timestamptz);
CREATE TABLE item (i_id int PRIMARY KEY, i_price numeric(6,2) NOT NULL, i_name text NOT NULL);
CREATE TABLE stock (w_id int, i_id int, s_quantity int NOT NULL, s_ytd int NOT NULL,
    s_data text NOT NULL, PRIMARY KEY (w_id, i_id)) WITH (fillfactor = :fillfactor);
CREATE TABLE orders (w_id int, d_id int, o_id int, c_id int NOT NULL, o_carrier int,
    o_lines int NOT NULL, o_time timestamptz NOT NULL, PRIMARY KEY (w_id, d_id, o_id))
    WITH (fillfactor = :fillfactor);
CREATE TABLE new_order (w_id int, d_id int, o_id int, PRIMARY KEY (w_id, d_id, o_id));
CREATE TABLE order_line (w_id int, d_id int, o_id int, ol_number int, i_id int NOT NULL,
    ol_quantity int NOT NULL, ol_amount numeric(8,2) NOT NULL, ol_delivered timestamptz,
    PRIMARY KEY (w_id, d_id, o_id, ol_number)) WITH (fillfactor = :fillfactor);

INSERT INTO item SELECT i, (i % 9900) / 100.0 + 1, 'item ' || i FROM generate_series(1, :items) i;
INSERT INTO warehouse SELECT w, 0, 'warehouse ' || w FROM generate_series(1, :warehouses) w;
INSERT INTO district SELECT w, d, 1, 0
    FROM generate_series(1, :warehouses) w, generate_series(1, 10) d;
INSERT INTO customer SELECT w, d, c, 0, 0, repeat(md5(c::text), 4)
    FROM generate_series(1, :warehouses) w, generate_series(1, 10) d,
         generate_series(1, :customers) c;
INSERT INTO stock SELECT w, i, 50 + i % 50, 0, repeat(md5(i::text), 2)
    FROM generate_series(1, :warehouses) w, generate_series(1, :items) i;
CREATE INDEX orders_of_customer ON orders (w_id, d_id, c_id, o_id);

CREATE FUNCTION place_order(w int, d int, c int, lines int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    placed int;
    chosen int;
    price numeric;
    items int := (SELECT max(i_id) FROM item);
BEGIN
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE w_id = w AND d_id = d
        RETURNING d_next_o_id - 1 INTO placed;
    INSERT INTO orders VALUES (w, d, placed, c, NULL, lines, now());
    INSERT INTO new_order VALUES (w, d, placed);
    -- In the order of items, so that two orders never wait for each other in a circle.
    FOR line IN 1..lines LOOP
        chosen := ((line - 1) * items + floor(random() * items)::int) / lines + 1;
        SELECT i_price INTO price FROM item WHERE i_id = chosen;
        UPDATE stock SET s_quantity = CASE WHEN s_quantity > 15 THEN s_quantity - 5
            ELSE s_quantity + 86 END, s_ytd = s_ytd + 5 WHERE w_id = w AND i_id = chosen;
        INSERT INTO order_line VALUES (w, d, placed, line, chosen, 5, 5 * coalesce(price, 1), NULL);
    END LOOP;
END
$body$;

CREATE FUNCTION pay(w int, d int, c int, amount numeric) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = w;
    UPDATE district SET d_ytd = d_ytd + amount WHERE w_id = w AND d_id = d;
    UPDATE customer SET c_balance = c_balance - amount, c_payments = c_payments + 1
        WHERE w_id = w AND d_id = d AND c_id = c;
    INSERT INTO history VALUES (w, d, c, amount, now());
END
$body$;

CREATE FUNCTION last_order(w int, d int, c int) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    found int;
BEGIN
    SELECT o_id INTO found FROM orders WHERE w_id = w AND d_id = d AND c_id = c
        ORDER BY o_id DESC LIMIT 1;
    RETURN (SELECT count(*) FROM order_line WHERE w_id = w AND d_id = d AND o_id = found);
END
$body$;

-- The oldest open order of each district leaves the head of its table: what VACUUM is for.
CREATE FUNCTION deliver(w int, carrier int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    oldest int;
    payer int;
BEGIN
    FOR d IN 1..10 LOOP
        SELECT o_id INTO oldest FROM new_order WHERE w_id = w AND d_id = d ORDER BY o_id LIMIT 1;
        CONTINUE WHEN oldest IS NULL;
        DELETE FROM new_order WHERE w_id = w AND d_id = d AND o_id = oldest;
        CONTINUE WHEN NOT FOUND;
        UPDATE orders SET o_carrier = carrier WHERE w_id = w AND d_id = d AND o_id = oldest
            RETURNING c_id INTO payer;
        UPDATE order_line SET ol_delivered = now() WHERE w_id = w AND d_id = d AND o_id = oldest;
        UPDATE customer SET c_balance = c_balance + 1 WHERE w_id = w AND d_id = d AND c_id = payer;
    END LOOP;
END
$body$;

CREATE FUNCTION low_stock(w int, d int) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    newest int;
BEGIN
    SELECT d_next_o_id INTO newest FROM district WHERE w_id = w AND d_id = d;
    RETURN (SELECT count(DISTINCT s.i_id) FROM order_line l JOIN stock s
        ON s.w_id = w AND s.i_id = l.i_id
        WHERE l.w_id = w AND l.d_id = d AND l.o_id BETWEEN newest - 20 AND newest - 1
        AND s.s_quantity < 15);
END
$body$;
