"""The columns of Adult and KDDCup99 and the values of their attributes, as published with the sets: public facts."""

from __future__ import annotations

__all__ = ["ADULT_BOUNDS", "ADULT_COLUMNS", "ADULT_LEVELS", "KDD_BOUNDS", "KDD_COLUMNS", "KDD_LEVELS"]

ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
)  # fmt: skip

ADULT_BOUNDS = {
    "age": 90, "fnlwgt": 1.5e6, "education-num": 16, "capital-gain": 99_999, "capital-loss": 4500, "hours-per-week": 99,
}  # fmt: skip
"""Ages end at 90 and gains at 99,999 by the census's own rules; the others are round numbers above what occurs."""

ADULT_LEVELS = {
    "workclass": (
        "?", "Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov",
        "Without-pay",
    ),
    "education": (
        "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc", "Bachelors",
        "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
    ),
    "marital-status": (
        "Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Separated",
        "Widowed",
    ),
    "occupation": (
        "?", "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing", "Handlers-cleaners",
        "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty", "Protective-serv", "Sales",
        "Tech-support", "Transport-moving",
    ),
    "relationship": ("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"),
    "race": ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
    "sex": ("Female", "Male"),
    "native-country": (
        "?", "Cambodia", "Canada", "China", "Columbia", "Cuba", "Dominican-Republic", "Ecuador", "El-Salvador",
        "England", "France", "Germany", "Greece", "Guatemala", "Haiti", "Holand-Netherlands", "Honduras", "Hong",
        "Hungary", "India", "Iran", "Ireland", "Italy", "Jamaica", "Japan", "Laos", "Mexico", "Nicaragua",
        "Outlying-US(Guam-USVI-etc)", "Peru", "Philippines", "Poland", "Portugal", "Puerto-Rico", "Scotland", "South",
        "Taiwan", "Thailand", "Trinadad&Tobago", "United-States", "Vietnam", "Yugoslavia",
    ),
}  # fmt: skip

KDD_COLUMNS = (
    "duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "land", "wrong_fragment", "urgent", "hot",
    "num_failed_logins", "logged_in", "num_compromised", "root_shell", "su_attempted", "num_root", "num_file_creations",
    "num_shells", "num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login", "count", "srv_count",
    "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate", "diff_srv_rate",
    "srv_diff_host_rate", "dst_host_count", "dst_host_srv_count", "dst_host_same_srv_rate", "dst_host_diff_srv_rate",
    "dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate", "dst_host_serror_rate", "dst_host_srv_serror_rate",
    "dst_host_rerror_rate", "dst_host_srv_rerror_rate",
)  # fmt: skip

KDD_BOUNDS = {
    "duration": 1e5, "src_bytes": 2.0**31, "dst_bytes": 2.0**31, "count": 511, "srv_count": 511,
    "dst_host_count": 255, "dst_host_srv_count": 255, "hot": 100, "num_compromised": 1e4, "num_root": 1e4,
    "wrong_fragment": 3, "urgent": 10, "num_failed_logins": 10, "num_file_creations": 100, "num_shells": 10,
    "num_access_files": 10, "num_outbound_cmds": 10,
}  # fmt: skip
"""Of the counts; rates and flags end at 1."""

KDD_LEVELS = {
    "protocol_type": ("icmp", "tcp", "udp"),
    "service": (
        "IRC", "X11", "Z39_50", "aol", "auth", "bgp", "courier", "csnet_ns", "ctf", "daytime", "discard", "domain",
        "domain_u", "echo", "eco_i", "ecr_i", "efs", "exec", "finger", "ftp", "ftp_data", "gopher", "harvest",
        "hostnames", "http", "http_2784", "http_443", "http_8001", "imap4", "iso_tsap", "klogin", "kshell", "ldap",
        "link", "login", "mtp", "name", "netbios_dgm", "netbios_ns", "netbios_ssn", "netstat", "nnsp", "nntp", "ntp_u",
        "other", "pm_dump", "pop_2", "pop_3", "printer", "private", "red_i", "remote_job", "rje", "shell", "smtp",
        "sql_net", "ssh", "sunrpc", "supdup", "systat", "telnet", "tftp_u", "tim_i", "time", "urh_i", "urp_i", "uucp",
        "uucp_path", "vmnet", "whois",
    ),
    "flag": ("OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"),
}  # fmt: skip
"""With 38 numbers, the 122 columns of the thesis' chapter 6."""
