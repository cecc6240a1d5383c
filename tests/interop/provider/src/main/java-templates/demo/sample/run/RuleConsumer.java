package demo.sample.run;

import demo.sample.api.RichService;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import ${dubbo.package}.config.ApplicationConfig;
import ${dubbo.package}.config.ReferenceConfig;
import ${dubbo.package}.config.RegistryConfig;
import ${dubbo.package}.rpc.RpcContext;

/**
 * A real consumer that is told by its input what to call, to see which providers Dubbo itself chooses under a rule.
 * A line "N [attachment=value ...]" makes N calls of whoami; the answer is one line "name=count name=count", with
 * NONE for calls that found no provider.  Options: registry=, app=
 */
public class RuleConsumer {
    public static void main(String[] argv) throws Exception {
        Map<String, String> o = new HashMap<>();
        for (String a : argv) o.put(a.substring(0, a.indexOf('=')), a.substring(a.indexOf('=') + 1));
        System.setProperty("dubbo.application.qos.enable", "false");
        System.setProperty("dubbo.application.qos-enable", "false");
        ApplicationConfig app = new ApplicationConfig(o.getOrDefault("app", "gw"));
        app.setParameters(new HashMap<>(java.util.Collections.singletonMap("qos.enable", "false")));
        ReferenceConfig<RichService> r = new ReferenceConfig<>();
        RegistryConfig registry = new RegistryConfig(o.get("registry"));
        r.setApplication(app);
        r.setRegistry(registry);
        r.setInterface(RichService.class);
        r.setTimeout(3000);
        r.setRetries(0);
        r.setCheck(false);
        start(app, registry, r);
        RichService s = r.get();
        System.out.println("READY");
        System.out.flush();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) System.out.println(call(s, line.split(" ")));
        Runtime.getRuntime().halt(0);
    }

    private static String call(RichService s, String[] words) {
        Map<String, Integer> seen = new TreeMap<>();
        for (int i = Integer.parseInt(words[0]); i > 0; i--) {
            for (int j = 1; j < words.length; j++) RpcContext.getContext().setAttachment(words[j].split("=")[0], words[j].split("=")[1]);
            String who;
            try {
                who = s.whoami();
            } catch (Throwable e) {
                who = String.valueOf(e.getMessage()).contains("No provider") ? "NONE" : e.getClass().getSimpleName();
            }
            seen.merge(who, 1, Integer::sum);
        }
        StringBuilder out = new StringBuilder("SEEN");
        seen.forEach((k, v) -> out.append(' ').append(k).append('=').append(v));
        return out.toString();
    }

    /** From 2.7 on rules of the configuration center are read only by what DubboBootstrap starts; 2.6 has none. */
    private static void start(ApplicationConfig app, RegistryConfig registry, ReferenceConfig<?> r) throws Exception {
        Class<?> b;
        try {
            b = Class.forName("${dubbo.package}.config.bootstrap.DubboBootstrap");
        } catch (ClassNotFoundException e) {
            return;
        }
        Object boot = b.getMethod("getInstance").invoke(null);
        b.getMethod("application", ApplicationConfig.class).invoke(boot, app);
        b.getMethod("registry", RegistryConfig.class).invoke(boot, registry);
        b.getMethod("reference", ReferenceConfig.class).invoke(boot, r);
        b.getMethod("start").invoke(boot);
    }
}
