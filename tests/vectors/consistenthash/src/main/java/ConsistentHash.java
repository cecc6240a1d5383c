import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.dubbo.common.URL;
import org.apache.dubbo.rpc.Invoker;
import org.apache.dubbo.rpc.RpcInvocation;

/**
 * What Dubbo's own ConsistentHashLoadBalance makes of lists of providers and arguments, as JSON.
 *
 * A fresh selector is made for every pick: that of 2.7 counts calls and moves keys away from a provider that got more
 * than its share.
 */
public class ConsistentHash {
    private static final String METHOD = "get";
    private static final StringBuilder out = new StringBuilder();

    private static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < 0x20) {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }

    @SuppressWarnings("unchecked")
    private static Invoker<Object> invoker(URL url) {
        return (Invoker<Object>) Proxy.newProxyInstance(ConsistentHash.class.getClassLoader(), new Class<?>[] {Invoker.class},
            (p, m, a) -> {
                switch (m.getName()) {
                    case "getUrl": return url;
                    case "isAvailable": return true;
                    case "getInterface": return Object.class;
                    case "hashCode": return System.identityHashCode(p);
                    case "equals": return p == a[0];
                    default: return null;
                }
            });
    }

    private static List<Invoker<Object>> invokers(String[] addresses, String parameters) {
        List<Invoker<Object>> list = new ArrayList<>();
        for (String a : addresses) {
            list.add(invoker(URL.valueOf("dubbo://" + a + "/demo.S?interface=demo.S" + parameters)));
        }
        return list;
    }

    private static Object selector(List<Invoker<Object>> list) throws Exception {
        Class<?> c = Class.forName(
            "org.apache.dubbo.rpc.cluster.loadbalance.ConsistentHashLoadBalance$ConsistentHashSelector");
        Constructor<?> k = c.getDeclaredConstructor(List.class, String.class, int.class);
        k.setAccessible(true);
        return k.newInstance(list, METHOD, 1);
    }

    private static Object call(Object selector, String name, Object argument, Class<?> type) throws Exception {
        Method m = selector.getClass().getDeclaredMethod(name, type);
        m.setAccessible(true);
        return m.invoke(selector, argument);
    }

    @SuppressWarnings("unchecked")
    private static void ring(String name, String[] addresses, String parameters, boolean whole) throws Exception {
        List<Invoker<Object>> list = invokers(addresses, parameters);
        Object s = selector(list);
        Field f = s.getClass().getDeclaredField("virtualInvokers");
        f.setAccessible(true);
        StringBuilder points = new StringBuilder();
        StringBuilder text = new StringBuilder();
        for (Map.Entry<Long, Invoker<Object>> e : ((TreeMap<Long, Invoker<Object>>) f.get(s)).entrySet()) {
            points.append(points.length() == 0 ? "" : ",").append('[').append(e.getKey()).append(',')
                .append(list.indexOf(e.getValue())).append(']');
            text.append(e.getKey()).append(' ').append(list.indexOf(e.getValue())).append('\n');
        }
        StringBuilder md5 = new StringBuilder();
        for (byte b : MessageDigest.getInstance("MD5").digest(text.toString().getBytes("UTF-8"))) {
            md5.append(String.format("%02x", b));
        }
        out.append("  {\"name\": ").append(quote(name)).append(", \"parameters\": ").append(quote(parameters))
            .append(",\n   \"addresses\": [");
        for (int i = 0; i < addresses.length; i++) {
            out.append(i == 0 ? "" : ", ").append(quote(addresses[i]));
        }
        out.append("],\n   \"md5\": \"").append(md5).append("\",\n   \"points\": [").append(whole ? points : "")
            .append("],\n   \"picks\": [\n");
        for (int i = 0; i < ARGUMENTS.length; i++) {
            Object[] values = new Object[ARGUMENTS[i].length / 3];
            StringBuilder args = new StringBuilder();
            for (int j = 0; j < values.length; j++) {
                values[j] = ARGUMENTS[i][3 * j + 2];
                args.append(j == 0 ? "" : ", ").append("{\"type\": ").append(quote((String) ARGUMENTS[i][3 * j]))
                    .append(", \"json\": ").append(quote((String) ARGUMENTS[i][3 * j + 1])).append('}');
            }
            Object fresh = selector(list);
            RpcInvocation inv = new RpcInvocation();
            inv.setMethodName(METHOD);
            inv.setArguments(values);
            Method select = null;
            for (Method m : fresh.getClass().getDeclaredMethods()) {
                if (m.getName().equals("select")) {
                    select = m;
                }
            }
            select.setAccessible(true);
            out.append("    {\"args\": [").append(args).append("], \"key\": ")
                .append(quote((String) call(fresh, "toKey", values, Object[].class))).append(", \"index\": ")
                .append(list.indexOf(select.invoke(fresh, inv))).append('}')
                .append(i + 1 < ARGUMENTS.length ? "," : "").append('\n');
        }
        out.append("  ]}");
    }

    /** Type as a route declares it ("" = none), the JSON that a client sends, the object of the call; several per row. */
    private static final Object[][] ARGUMENTS = {
        {},
        {"", "null", null},
        {"long", "42", 42L},
        {"long", "\"42\"", 42L},
        {"java.lang.Long", "-9223372036854775808", Long.MIN_VALUE},
        {"int", "0", 0},
        {"short", "-7", (short) -7},
        {"byte", "127", (byte) 127},
        {"", "42", 42},
        {"", "9007199254740993", 9007199254740993L},
        {"boolean", "true", true},
        {"", "false", false},
        {"java.lang.String", "\"42\"", "42"},
        {"java.lang.String", "\"\"", ""},
        {"", "\"Zo\\u00eb \\\"x\\\"\"", "Zo\u00eb \"x\""},
        {"java.lang.String", "\"\u4e2d\u6587 \\ud83d\\ude00\"", "\u4e2d\u6587 \ud83d\ude00"},
        {"char", "\"x\"", 'x'},
        {"double", "1", 1.0},
        {"double", "0.1", 0.1},
        {"double", "-0.0", -0.0},
        {"double", "100000.5", 100000.5},
        {"double", "9999999.5", 9999999.5},
        {"double", "10000000", 1.0E7},
        {"double", "12345678901.25", 12345678901.25},
        {"double", "0.001", 0.001},
        {"double", "0.00099", 0.00099},
        {"java.lang.Double", "1e300", 1e300},
        {"double", "1.7976931348623157e308", Double.MAX_VALUE},
        {"double", "123456789012345680000", 1.2345678901234568E20},
        {"float", "99.8", 99.8f},
        {"float", "16777216", 16777216f},
        {"float", "0.0001", 0.0001f},
        {"", "2.5", 2.5},
        {"java.math.BigDecimal", "10000000.00", new BigDecimal("10000000.00")},
        {"java.math.BigDecimal", "1E+3", new BigDecimal("1E+3")},
        {"java.math.BigDecimal", "0.0000001", new BigDecimal("0.0000001")},
        {"java.math.BigDecimal", "0.000001", new BigDecimal("0.000001")},
        {"java.math.BigDecimal", "-12.50e-9", new BigDecimal("-12.50e-9")},
        {"java.math.BigDecimal", "0E-10", new BigDecimal("0E-10")},
        {"java.math.BigInteger", "123456789012345678901234567890", new BigInteger("123456789012345678901234567890")},
        {"java.lang.String", "\"a\"", "a", "long", "7", 7L},
        {"long", "7", 7L, "java.lang.String", "\"a\"", "a", "boolean", "true", true},
        {"java.lang.String", "\"user-1\"", "user-1"}, {"java.lang.String", "\"user-2\"", "user-2"},
        {"java.lang.String", "\"user-3\"", "user-3"}, {"java.lang.String", "\"user-4\"", "user-4"},
        {"java.lang.String", "\"user-5\"", "user-5"}, {"java.lang.String", "\"user-6\"", "user-6"},
        {"java.lang.String", "\"user-7\"", "user-7"}, {"java.lang.String", "\"user-8\"", "user-8"},
        {"java.lang.String", "\"user-9\"", "user-9"}, {"java.lang.String", "\"user-10\"", "user-10"},
    };

    public static void main(String[] args) throws Exception {
        String[] three = {"10.0.0.1:20880", "10.0.0.2:20880", "10.0.0.3:20881"};
        String[] many = new String[100];
        for (int i = 0; i < many.length; i++) {
            many[i] = "192.0.2." + i + ":" + (20880 + i % 3);
        }
        out.append("[\n");
        ring("three", three, "", true);
        out.append(",\n");
        ring("one", new String[] {"10.0.0.1:20880"}, "", false);
        out.append(",\n");
        ring("names and IPv6", new String[] {"host.example.com:1", "[2001:db8::1]:20880", "127.0.0.1:65535"}, "", false);
        out.append(",\n");
        ring("hundred", many, "", false);
        out.append(",\n");
        ring("few nodes", three, "&hash.nodes=8", true);
        out.append(",\n");
        ring("nodes that are no multiple of 4", three, "&get.hash.nodes=10&hash.nodes=8", true);
        out.append(",\n");
        ring("second argument", three, "&hash.arguments=1", false);
        out.append(",\n");
        ring("several arguments of the method", three, "&hash.arguments=1&get.hash.arguments=0,2 , 1", false);
        out.append(",\n");
        ring("arguments that are not there", three, "&hash.arguments=-1,5", false);
        out.append("\n]\n");
        System.out.write(out.toString().getBytes("UTF-8"));
        System.out.flush();
        System.exit(0);
    }
}
