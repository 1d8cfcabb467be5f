"""One hundred requests of many kinds, in several languages and lengths."""

GARDEN = """The city of Marlow has turned eleven parking lots into gardens since 2019. Each garden is looked after by
the people who live around it, and each has its own rules. In the largest, on Dock Street, forty families grow
tomatoes, beans and squash in raised beds, because the ground below holds oil from the cars that stood there. The
city pays for water and for one gardener, who visits twice a week. It does not pay for seeds or tools. A shed with
a lock keeps the tools, and a list on its door says who has the key. In the first summer a third of the harvest was
stolen at night. The families answered by planting a row of raspberries along the fence for everyone who passes, and
the thefts almost stopped. The council will vote in May on whether to make six more lots into gardens. Shop owners
are against it: they say that customers who cannot park drive to the mall instead. A survey of the council found
that four of five customers on Dock Street come on foot, by bus or by bicycle."""

REPORT = """Incident report, 14 March. At 09:12 the monitoring system reported that orders could not be paid. The cause
was a certificate that had run out at 09:00. The engineer on duty, Priya, saw the alarm at 09:15, but the runbook
named a server that had been replaced in January, so that she renewed the wrong certificate first. At 09:41 Tomas
joined the call and found the load balancer that still had the old file. The new certificate was active at 09:52.
In those 52 minutes 1,840 customers saw an error page, and 311 of them came back within the day. Nobody was charged
twice. Three things will change. Certificates are renewed by a job that runs every night, and not by hand. The job
sends a message to the team if a certificate has fewer than 20 days left. The runbook is generated from the list of
servers, so that it cannot name one that is gone. Priya writes the job by the end of March, Tomas the generator by
the middle of April. The team meets again on 20 April to see whether both are done."""

LETTER = """Dear Ms. Okafor, thank you for your letter of 2 June about the heating in your flat. I am sorry that it
took us three weeks to answer. Our technician found that the pump in the cellar of number 14 moves too little water
to reach the fifth floor when the outside temperature is below five degrees. A new pump has been ordered and will be
fitted in the week of 8 September, before the cold season. The work takes one day, and on that day there will be no
warm water between 8 in the morning and 4 in the afternoon. We will put a note in the hall one week before. Until
then you may borrow two electric heaters from the office, free of charge. Please bring your key card. You also asked
for a lower rent for last winter. You told us of the fault on 11 November, so we will refund eight percent of the
rent from then to the end of March. You need not do anything: the amount comes with the next bill. Kind regards,
Jonas Weber, Linden Housing"""

CODE = """def find(items, wanted):
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(items) and items[low] == wanted else -1"""

QUERY = """SELECT c.name, COUNT(o.id) AS orders, SUM(o.total) AS spent
FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.created_at >= '2024-01-01'
GROUP BY c.name HAVING SUM(o.total) > 500 ORDER BY spent DESC LIMIT 10;"""

SHORT = [
    "What is the capital of Australia?",
    "Explain in one paragraph why the sky is blue.",
    "Write a short story about a lighthouse keeper who collects clouds.",
    "Give me five tips for sleeping better.",
    "How do vaccines work?",
    "Write a haiku about the sea in winter.",
    "What is the difference between weather and climate?",
    "Name three inventions of the 19th century and say who made them.",
    "How many legs do six spiders have?",
    "Translate to French: The train leaves at eight in the morning.",
    "Translate to Spanish: My sister lives in a small house near the lake.",
    "Translate to German: We need two tickets for the concert on Friday.",
    "What should I cook with rice, eggs and spinach?",
    "Explain gravity to a child of six.",
    "Write an email to my landlord that the kitchen sink is blocked.",
    "What are the advantages of public transport?",
    "Who wrote Don Quixote, and what is it about?",
    "Write a limerick about a cat who learns to swim.",
    "What is photosynthesis?",
    "List the planets of the solar system in order of their size.",
    "How do I remove a coffee stain from a white shirt?",
    "Write a toast for the wedding of my best friend.",
    "What is 17 times 23? Show the steps.",
    "If a train goes 180 kilometers in 2.5 hours, how fast is it on average?",
    "A shirt costs 40 dollars and is reduced by 15 percent. What does it cost now?",
    "Why do leaves change color in autumn?",
    "Give three arguments for and three against homework.",
    "Describe the taste of an orange without naming a fruit.",
    "What does the heart do, and how many chambers does it have?",
    "Write the first paragraph of a detective story set in a library.",
    "How does a bicycle stay upright?",
    "What is the meaning of the proverb: still waters run deep?",
    "Make a packing list for a weekend in the mountains.",
    "Suggest three names for a bakery, with a reason for each.",
    "Write a polite refusal of an invitation to dinner.",
    "What is inflation, and who suffers most from it?",
    "Who was Ada Lovelace?",
    "Write a dialogue between the moon and a street lamp.",
    "What are black holes?",
    "How can I learn to play the guitar on my own?",
    "Write a product description of a wooden toy boat.",
    "Complete the sentence: The old clock in the hall stopped when",
    "Sort these words by the alphabet: pear, apple, quince, fig, mango, banana.",
    "Give the opposite of each word: hot, early, brave, empty, loud.",
    "Is a tomato a fruit or a vegetable?",
    "What happened in the year 1969?",
    "Write a slogan for a shop that repairs old radios.",
    "How long does it take light to travel from the sun to the earth?",
    "Say hello.",
    "Answer with yes or no: is 91 a prime number?",
    "Rewrite in the passive: The dog chased the ball across the field.",
    "Correct the mistakes: he dont has no time for to go at the market yesterday",
    "Give a JSON object with the keys name, age and city for a person that you invent.",
    "Make a table in Markdown of three countries with their capitals and rivers.",
    "Classify the sentence as positive or negative: The room was clean, but I will never come back.",
]

CODING = [
    "Write a Python function that returns the n-th Fibonacci number.",
    "Write a JavaScript function that reverses the words of a sentence.",
    "Write a SQL query that finds the three customers with the most orders.",
    "What does the keyword `yield` do in Python? Give an example.",
    "Write a regular expression that matches dates such as 2024-05-31.",
    "Write a shell command that counts the lines of all .txt files in a folder.",
    "Explain the difference between a list and a tuple in Python.",
    "Write HTML for a form with a name, an email address and a button.",
    "Write a CSS rule that centers a box on the page.",
    "Write a function in C that swaps two integers.",
    "What is recursion? Show it with a function in any language.",
    "Convert this to a list comprehension:\nout = []\nfor x in data:\n    if x > 3:\n        out.append(x * x)",
    f"Explain what this function does:\n\n{CODE}",
    f"Write three tests for this function:\n\n{CODE}",
    f"Rewrite this function in JavaScript:\n\n{CODE}",
    f"Explain this query, one clause after the other:\n\n{QUERY}",
    f"How can this query be made faster?\n\n{QUERY}",
    "Find the mistake:\n\nfunction sum(a) {\n  let total\n  for (const x of a) total += x\n  return total\n}",
]

LANGUAGES = [
    "¿Cuál es la capital de Perú y por qué es famosa?",
    "Escribe un poema corto sobre la lluvia.",
    "Explique en français ce qu'est une éclipse de lune.",
    "Donne-moi une recette simple de soupe à l'oignon.",
    "Was ist der Unterschied zwischen Wetter und Klima?",
    "Schreibe eine kurze Geschichte über einen Fuchs und einen Raben.",
    "Qual è la differenza tra un lago e un mare?",
    "Descreva a cidade de Lisboa em três frases.",
    "Что такое фотосинтез?",
    "日本の首都はどこですか。",
    "中国最长的河是哪一条？",
    "ما هي عاصمة مصر؟",
]

LONG = [
    f"Summarize this text in two sentences.\n\n{GARDEN}",
    f"Why were tomatoes planted in raised beds? Answer from the text.\n\n{GARDEN}",
    f"List the arguments for and against more gardens in this text.\n\n{GARDEN}",
    f"Write a headline for this article.\n\n{GARDEN}",
    f"Summarize this report for a manager who has one minute.\n\n{REPORT}",
    f"When was the problem solved, and who found the cause?\n\n{REPORT}",
    f"Make a list of the tasks in this report, with names and dates.\n\n{REPORT}",
    f"What did the customers notice of this incident?\n\n{REPORT}",
    f"What will happen on the day of the work, according to this letter?\n\n{LETTER}",
    f"Write a short answer to this letter that thanks for it.\n\n{LETTER}",
    f"Which refund is promised in this letter?\n\n{LETTER}",
    f"Translate the first two sentences of this letter to Spanish.\n\n{LETTER}",
    f"Here are two texts. What do they have in common?\n\n{GARDEN}\n\n{LETTER}",
    f"Here are two texts. Which of them is about a mistake, and which mistake?\n\n{REPORT}\n\n{GARDEN}",
    f"Here are three texts. Give a title to each.\n\n{GARDEN}\n\n{REPORT}\n\n{LETTER}",
]


def list_prompts():
    """Returns the requests, so mixed that the first few of them already have all kinds."""
    kinds = [SHORT, CODING, LANGUAGES, LONG]
    placed = [((at + 0.5) / len(kind), order, text) for order, kind in enumerate(kinds) for at, text in enumerate(kind)]
    return [text for _, _, text in sorted(placed)]
