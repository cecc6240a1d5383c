#include "gateway/cmd_run.h"

#include <stdlib.h>

#include "gateway/control.h"

const char *run_default_config(void)
{
    const char *file = getenv("DUBBOGATE_CONFIG");

    return file != NULL && file[0] != '\0' ? file : SYSCONFDIR "/gateway.yaml";
}

int cmd_run(const char *config_file)
{
    return control_run(config_file);
}
